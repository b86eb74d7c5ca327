package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Consumers begin to reject when the removal has begun already: it is refused, everything is put
// back, and every message is still there.
func TestRefusedRemovalLosesNothingThatIsRejectedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			const messages = 60
			b := brokertest.New(t)
			c := newApplier(t, b, b.Endpoint)
			p := small(b)
			p.QueueType = queueType
			p.WorkQueues = map[string]pipeline.WorkQueue{"work": {Type: queueType}}
			b.Request(t, http.MethodPut, b.Path("queues", "work"), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": queueType}})
			require.NoError(t, create(t, c, p))
			all := list(t, c, p.Vhost)
			live := pipeline.Owned(p, all.Topology)
			removed := make(chan error, 1)
			go func() {
				removed <- c.Remove(t.Context(), Change{
					Vhost: p.Vhost, All: all, Live: live,
					CatchAll: "orders.failed",
				})
			}()
			awaitUnbound(t, c, p)
			rejectSlowly(t, b, "work", messages)

			var kept *KeptError
			if err := <-removed; !errors.As(err, &kept) {
				t.Fatalf("got %v", err)
			}
			after := list(t, c, p.Vhost)
			if changes := topology.Diff(live, pipeline.Owned(p, after.Topology)); !changes.Empty() {
				t.Errorf("not everything was put back: %+v", changes)
			}
			found := 0
			brokertest.Eventually(t, func() error {
				for _, queue := range []string{"orders.inbox", "orders.failed"} {
					for _, ok := b.Get(t, queue); ok; _, ok = b.Get(t, queue) {
						found++
					}
				}
				if found != messages {
					return fmt.Errorf("%d of %d messages found", found, messages)
				}
				return nil
			})
		})
	}
}

func awaitUnbound(t *testing.T, c *Applier, p pipeline.Pipeline) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		now, err := c.client.List(t.Context(), p.Vhost)
		if err != nil {
			return err
		}
		for _, binding := range now.Bindings {
			if strings.HasPrefix(binding.String(), "orders.dlx -> orders.inbox") {
				return errors.New("the inbox is still bound")
			}
		}
		return nil
	})
}

// rejectSlowly publishes and rejects ten messages a second.
func rejectSlowly(t *testing.T, b *brokertest.Broker, queue string, messages int) {
	t.Helper()
	ch := b.Channel(t)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for i := range messages {
		<-ticker.C
		b.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Append(nil, i)})
		d, ok, err := ch.Get(queue, false)
		if err != nil || !ok {
			t.Fatalf("get: %v, %v", ok, err)
		}
		require.NoError(t, d.Reject(false))
	}
}
