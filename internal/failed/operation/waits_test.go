package operation_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// A message that failed after hand-made retries goes back to the queue that rejected it, even if the queues where it waited are
// gone.
func TestReplayAfterHandMadeRetries(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"classic", "quorum"} {
		for name, c := range map[string]struct {
			// waits are queues by where their messages go when they expire. The work queue dead-letters to "wait".
			waits map[string]string
			// rejections are how often a consumer rejects the message, before it publishes it to the parking queue. If it does not,
			// the broker moves the message there from the last wait.
			rejections int64
			publishes  bool
		}{
			"parked by a consumer after one wait":  {map[string]string{"wait": "work"}, 2, true},
			"parked by a consumer after two waits": {map[string]string{"wait": "wait.longer", "wait.longer": "work"}, 1, true},
			"parked by the broker after one wait":  {map[string]string{"wait": "orders.failed"}, 1, false},
			"parked by the broker after two waits": {map[string]string{"wait": "wait.longer", "wait.longer": "orders.failed"}, 1, false},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.Pipeline = ""
				b.Call(t, "DELETE", b.Path("queues", "work"), nil, nil)
				b.DeclareQueue(t, "work", kind, map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"})
				for wait, next := range c.waits {
					b.DeclareQueue(t, wait, kind, map[string]any{
						"x-dead-letter-exchange": "", "x-dead-letter-routing-key": next, "x-message-ttl": 50,
					})
				}
				b.Publish(t, "", "work", amqp.Publishing{Body: []byte("order 1")})
				_, deliveries := b.Consume(t, "work", 1)
				for range c.rejections {
					d := brokertest.Receive(t, deliveries)
					require.NoError(t, d.Nack(false, false))
				}
				if c.publishes {
					d := brokertest.Receive(t, deliveries)
					b.Publish(t, "", "orders.failed", amqp.Publishing{Headers: d.Headers, Body: d.Body})
					require.NoError(t, d.Ack(false))
				}
				b.has(t, 1)
				for wait := range c.waits {
					b.Call(t, "DELETE", b.Path("queues", wait), nil, nil)
				}

				r := b.guard(t, operation.Options{}).NewReplay("", 0)
				_, err := r.Look(t.Context(), failed.Filter{Reasons: []string{"rejected"}, FromQueues: []string{"work"}})
				require.NoError(t, err)
				result, err := r.Publish(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, result.Confirmed)
				assert.Equal(t, "order 1", string(brokertest.Receive(t, deliveries).Body))
				assert.Empty(t, b.left(t))
			})
		}
	}
}

// RabbitMQ 3.10 turns the older deaths around, so they do not tell which queue rejected the message last.
func TestReplayAfterTwoQueuesRejected(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Pipeline = ""
	for queue, next := range map[string]string{"first": "second", "second": "wait", "wait": "orders.failed"} {
		arguments := map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": next}
		if queue == "wait" {
			arguments["x-message-ttl"] = 50
		}
		b.DeclareQueue(t, queue, "classic", arguments)
	}
	b.Publish(t, "", "first", amqp.Publishing{})
	for _, queue := range []string{"first", "second"} {
		_, deliveries := b.Consume(t, queue, 1)
		d := brokertest.Receive(t, deliveries)
		require.NoError(t, d.Nack(false, false))
	}
	b.has(t, 1)
	r := b.guard(t, operation.Options{}).NewReplay("", 0)
	_, err := r.Look(t.Context(), failed.Filter{Reasons: []string{"rejected"}})
	require.NoError(t, err)
	if b.VersionAtLeast("4.0") {
		assert.Equal(t, map[string]int{"second": 1}, r.Meant)
	} else {
		assert.Equal(t, map[string]int{failed.ErrNoWorkQueue.Error(): 1}, r.Skipped)
	}
}
