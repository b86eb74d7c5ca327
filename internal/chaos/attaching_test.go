//go:build chaos

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// Each queue that is attached dead-letters at once, wherever its leader is: one whose leader's node learned of the policy
// too late would hold its dead letters for ever. A cluster that has just started is the most likely to be late.
//
//nolint:paralleltest // other tests take nodes away
func TestEachQueueThatIsAttachedDeadLetters(t *testing.T) {
	const queues = 60
	a := newApplication(t)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t), "RABBITMQ_ENDPOINT="+a.Endpoint)
	var names, settings []string
	for i := range queues {
		names = append(names, fmt.Sprintf("work.%d", i))
		settings = append(settings, fmt.Sprintf("%q = {}", names[i]))
	}
	for i, n := range a.nodes {
		ch := a.through(t, n) // the queue's leader is on the node that declares it
		for j := i; j < queues; j += len(a.nodes) {
			declare(t, ch, names[j], amqp.Table{})
		}
	}
	tf.Write(t, "main.tf", required+fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "chaos" {
  name        = "chaos"
  vhost       = %q
  delays      = ["1h"]
  work_queues = { %s }
}
`, a.Vhost, strings.Join(settings, ", ")))
	tf.Run(t, "apply", "-auto-approve", "-input=false", "-no-color")

	held := map[string]bool{}
	ch := a.Channel(t)
	for _, name := range names {
		held[name] = true
		a.Publish(t, "", name, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(name)})
		d, ok, err := ch.Get(name, false)
		if err != nil || !ok {
			t.Fatalf("get from %s: %v, %v", name, ok, err)
		}
		require.NoError(t, d.Reject(false))
	}
	brokertest.Eventually(t, func() error {
		for d, ok := a.Get(t, "chaos.inbox"); ok; d, ok = a.Get(t, "chaos.inbox") {
			delete(held, string(d.Body))
		}
		if len(held) > 0 {
			return fmt.Errorf("dead letters held by %q", slices.Sorted(maps.Keys(held)))
		}
		return nil
	})
}
