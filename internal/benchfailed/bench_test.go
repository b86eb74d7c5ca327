//go:build bench

package benchfailed

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

var (
	messages  = flag.Int("messages", 100_000, "how many messages are in the failed queue")
	size      = flag.Int("size", 1024, "size of the bodies, in bytes")
	queueType = flag.String("type", "quorum", "type of the queues")
	rounds    = flag.Int("rounds", 3, "how often each has its turn")
)

// The commands take turns with the bare ones: what else the machine does meets all of them.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestThroughput(t *testing.T) {
	v := newVhost(t, terraformtest.BuildSidecar(t))
	taken := results{benchtest.Results[result]{}}
	for range *rounds {
		v.round(t, taken)
		taken.show(t)
	}
	for _, miss := range taken.misses() {
		t.Error(miss)
	}
}

// round has each of them go over all messages.
func (v *vhost) round(t *testing.T, taken results) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "failed.jsonl")
	v.fill(t)
	taken.Add(bareLook, v.bareLook(t))
	taken.Add(list, v.command(t, "list"))
	taken.Add(export, v.command(t, "export", "--file", file))
	v.Purge(t, names.FailedQueue())
	taken.Add(imports, v.command(t, "import", file, "--yes"))
	v.expect(t, names.FailedQueue())
	taken.Add(replay, v.command(t, "replay", "--all", "--yes", "--record", filepath.Join(t.TempDir(), "audit")))
	v.expect(t, workQueue)
	v.Purge(t, workQueue)
	v.fill(t)
	taken.Add(barePipe, v.barePipe(t))
	v.expect(t, workQueue)
	// The broker drops the last acknowledgements of a channel that closes: what they were for is there again.
	v.Purge(t, names.FailedQueue())
	v.Purge(t, workQueue)
}
