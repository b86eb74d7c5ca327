package worker_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

const (
	noDelayIsBound = "no delay of the configuration is bound"
	aDelayIsBound  = "a delay of the schedule is bound again"
)

func (p *testPipeline) unbindDelays(t *testing.T, delays ...string) {
	t.Helper()
	for _, delay := range delays {
		p.Unbind(t, "orders.retry", "q", "orders.retry."+delay)
	}
}

// The configuration comes before the schedule is applied. After that, all messages go on. Until then, one message after
// the other tries, so that the others are not sent and returned again and again.
func TestMessagesWaitUntilADelayIsBound(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 3, "orders.created")
	p.unbindDelays(t, "100ms", "200ms")
	ids := p.fillInbox(t, 400, toRetry)
	r := p.work(t)
	r.Log.Await(t, noDelayIsBound, 1)
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", 400) })
	time.Sleep(5 * time.Second) // several tries
	returned := r.series(t)["publishes_returned_total{exchange=orders.retry}"]
	require.True(t, 0 < returned && returned <= 60, "%v messages were returned", returned)
	p.expectEmpty(t, "orders.failed")

	for _, b := range p.spec.Expand().Bindings {
		if b.Source == "orders.retry" {
			p.Bind(t, b)
		}
	}
	if doubled := p.awaitAll(t, ids); doubled > 0 {
		t.Errorf("%d messages came twice", doubled)
	}
	r.Log.Await(t, aDelayIsBound, 1)
	p.expectEmpty(t, "orders.failed")
	if n := r.Log.Count(noDelayIsBound); n != 1 {
		t.Errorf("the log says %d times that no delay is bound", n)
	}
}

// The configuration comes after the schedule was applied. Once it is there, all messages go on.
func TestMessagesWaitForTheConfigurationThatWasApplied(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	old := withDelays(p.spec.Worker(), "1s", "3s")
	file := newConfigFile(t, old)
	ids := p.fillInbox(t, 400, toRetry)
	r := p.workFrom(t, p.URI, file, old)
	r.Log.Await(t, noDelayIsBound, 1)
	file.replace(t, configOf(t, p.spec.Worker()))
	if doubled := p.awaitAll(t, ids); doubled > 0 {
		t.Errorf("%d messages came twice", doubled)
	}
	p.expectEmpty(t, "orders.failed")
}

// A schedule that begins with 0s has one delay without a queue. As a substitute for all others, it would use up the
// attempts within moments.
func TestMessagesDoNotReturnAtOnceInsteadOfWaiting(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"0s", "200ms"}, 3, "orders.created")
	p.unbindDelays(t, "200ms")
	c := p.consume(t, "orders.created", nil)
	r := p.work(t)
	p.Publish(t, "", "orders.created", amqp.Publishing{DeliveryMode: amqp.Persistent})
	r.Log.Await(t, noDelayIsBound, 1)
	p.expectEmpty(t, "orders.failed")
	require.Len(t, c.deliveries(), 2)
	p.Bind(t, topology.Binding{Source: "orders.retry", Destination: "orders.retry.200ms", RoutingKey: "delay:200ms"})
	p.awaitFailed(t, "exhausted")
}

func TestMessagesThatFindNoDelayForLongAreParked(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 3, "orders.created")
	p.unbindDelays(t, "100ms", "200ms")
	p.fillInbox(t, 2, toRetry)
	r := p.workWith(t, p.URI, p.spec.Worker(), func(_ context.Context, o *worker.Options) { o.WithUnboundTimeout(time.Second) })
	p.awaitFailed(t, "worker_error")
	p.awaitFailed(t, "worker_error")
	r.Log.Await(t, "still no delay of the configuration is bound", 1)
}

// From RabbitMQ 4.3 on, the broker cancels a quorum queue's consumer after this timeout, and does not say why.
func TestConsumerTimeoutIsNamed(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.Needs(t, brokertest.Release(">= 4.3"))
	p.unbindFailedQueue(t)
	p.set(t, "PUT", p.Path("policies", "timeout"), map[string]any{
		"pattern": `^orders\.inbox$`, "apply-to": "queues", "priority": 5000, "definition": map[string]any{"consumer-timeout": 1000},
	})
	r := p.work(t)
	p.fillInbox(t, 1, toPark)
	r.Log.Await(t, "a message was unacknowledged for longer than consumer_timeout", 1)
}

// A missed return is a lost message, since its confirm still arrives.
func TestReturnsAreNeverMissed(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 9, "orders.created")
	p.unbindDelays(t, "200ms")
	const messages = 4_000
	ids := p.fillInbox(t, messages, func(i int) amqp.Publishing {
		// Every other message asks for the delay that is not bound.
		return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "retry-after-ms": int32(100 + 100*(i%2))}}
	})
	p.work(t)
	p.awaitAll(t, ids)
	p.expectEmpty(t, p.names.FailedQueue())
}
