package owner

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// detached returns a change that detaches n queues. Another owner's policy covers each of them, too.
func detached(n int) (apply.Change, []string) {
	vhost := topology.Vhost{Name: "/", Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}}
	deadLetters := topology.Arguments{"dead-letter-exchange": "dlx"}
	live := topology.New()
	live.Policies["own"] = topology.Policy{Pattern: "^work", ApplyTo: "queues", Definition: deadLetters}
	vhost.Policies["own"] = live.Policies["own"]
	var queues []string
	for i := range n {
		queue := fmt.Sprintf("work%04d", i)
		queues = append(queues, queue)
		vhost.Queues[queue] = topology.Queue{Type: topology.Quorum}
		vhost.Policies["other/"+queue] = topology.Policy{Pattern: "^" + queue + "$", ApplyTo: "queues", Priority: 1, Definition: deadLetters}
	}
	return apply.Change{Vhost: "/", All: vhost, Live: live, Wanted: topology.New()}, queues
}

func TestDroppedDeadLettersLeaveOutPoliciesThatGo(t *testing.T) {
	t.Parallel()
	change, queues := detached(3)
	run := configured.Unconnected()
	require.Empty(t, droppedDeadLetters(run, change, queues))
	run.Goes(configured.Policy, "/", queues[1], "other/"+queues[1])
	require.Equal(t, queues[1:2], droppedDeadLetters(run, change, queues))
}

// The policies of a vhost are not copied for each queue that a change detaches.
//
//nolint:paralleltest // measures
func TestDetachedQueuesTakeMemoryByTheirNumber(t *testing.T) {
	taken := func(n int) uint64 {
		change, queues := detached(n)
		run := configured.Unconnected()
		droppedDeadLetters(run, change, queues) // compiles the patterns
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		droppedDeadLetters(run, change, queues)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := taken(50), taken(500)
	t.Logf("%d bytes for 50 queues, %d for 500", few, many)
	require.Less(t, many, 30*few, "quadratic growth would be 100")
}
