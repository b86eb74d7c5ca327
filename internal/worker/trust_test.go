package worker_test

import (
	"math"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestHeadersOfAnotherPipelineOrQueueAreDropped(t *testing.T) {
	t.Parallel()
	tests := map[string]amqp.Table{
		"copied from another queue": {"retry-pipeline": "orders", "retry-queue": "orders.paid", "retry-count": int64(2)},
		"copied from another pipeline": {
			"retry-pipeline": "other", "retry-queue": "other.created", "retry-count": int64(2), "retry-routing-key": "secret",
		},
		"without a pipeline": {
			"retry-queue": "orders.created", "retry-count": int64(2), "retry-routing-key": "forged", "retry-exchange": "forged",
		},
		"negative count":               {"retry-pipeline": "orders", "retry-queue": "orders.created", "retry-count": int64(math.MinInt64)},
		"count of another type":        {"retry-pipeline": "orders", "retry-queue": "orders.created", "retry-count": "2"},
		"headers of other types":       {"retry-pipeline": amqp.Table{}, "retry-queue": []any{int32(1)}, "retry-history": 1.5, "x-death": "no"},
		"another pipeline's own queue": {"retry-queue": "orders.inbox", "retry-pipeline": "orders"},
	}
	for name, headers := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created", "orders.paid")
			p.work(t)
			created, paid := p.consume(t, "orders.created", nil), p.consume(t, "orders.paid", nil)
			p.Publish(t, "", "orders.created", amqp.Publishing{Headers: headers})
			failed := p.awaitFailed(t, "exhausted")
			if failed.Headers["retry-queue"] != "orders.created" || failed.Headers["retry-count"] != int64(3) ||
				failed.Headers["retry-routing-key"] != "orders.created" || failed.Headers["retry-exchange"] != "" {
				t.Errorf("headers %v", failed.Headers)
			}
			if n, m := len(created.deliveries()), len(paid.deliveries()); n != 3 || m != 0 {
				t.Errorf("%d and %d deliveries, want 3 and 0", n, m)
			}
		})
	}
}

func TestCountAboveTheMaximumIsExhausted(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	p.work(t)
	c := p.consume(t, "orders.created", nil)
	p.Publish(t, "", "orders.created", amqp.Publishing{Headers: amqp.Table{
		"retry-pipeline": "orders", "retry-queue": "orders.created", "retry-count": int64(math.MaxInt64),
	}})
	p.awaitFailed(t, "exhausted")
	if n := len(c.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
}

// A consumer that publishes its message to the dead-letter exchange with a copy of all headers looks
// like a message whose queue vanished.
func TestConsumerRepublishesWithCopiedHeaders(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 4, "orders.created")
	p.work(t)
	ch := p.Channel(t)
	c := p.consume(t, "orders.created", func(d amqp.Delivery) error {
		if d.Headers["retry-count"] == nil {
			return d.Reject(false)
		}
		copied := publishingOf(d, d.Headers)
		copied.Headers["dead-letter-error"] = "no such order"
		if err := ch.PublishWithContext(t.Context(), "orders.dlx", "consumer", true, false, copied); err != nil {
			return err
		}
		return d.Ack(false)
	})
	p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "m"})
	failed := p.awaitFailed(t, "exhausted")
	if failed.Headers["retry-routing-key"] != "orders.created" || failed.Headers["dead-letter-error"] != "no such order" {
		t.Errorf("headers %v", failed.Headers)
	}
	if n := len(c.deliveries()); n != 4 {
		t.Errorf("%d deliveries, want 4", n)
	}
	p.expectEmpty(t, p.names.FailedQueue())
}

// The copied x-death of a message that was dead-lettered on its way to the work queue names a queue that
// the pipeline has nothing to do with.
func TestConsumerRepublishesWithHeadersOfAnotherDeath(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 4, "orders.created")
	p.set(t, "PUT", p.Path("queues", "app.delay"), map[string]any{"durable": true, "arguments": map[string]any{
		"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.created",
	}})
	p.work(t)
	ch := p.Channel(t)
	var original amqp.Table
	c := p.consume(t, "orders.created", func(d amqp.Delivery) error {
		if original == nil {
			original = d.Headers
		}
		copied := publishingOf(d, d.Headers)
		// Not the one of the retry queue, which is known to be the pipeline's.
		copied.Headers["x-death"], copied.Headers["retry-queue"] = original["x-death"], "orders.created"
		if err := ch.PublishWithContext(t.Context(), "orders.dlx", "consumer", true, false, copied); err != nil {
			return err
		}
		return d.Ack(false)
	})
	p.Publish(t, "", "app.delay", amqp.Publishing{})
	failed := p.awaitFailed(t, "exhausted")
	if failed.Headers["retry-queue"] != "orders.created" || len(c.deliveries()) != 4 {
		t.Errorf("%d deliveries, want 4; headers %v", len(c.deliveries()), failed.Headers)
	}
}

// The worker may be older than a work queue.
func TestWorkQueueThatIsNotConfiguredYet(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created", "orders.new")
	w := p.spec.Worker()
	delete(w.WorkQueues, "orders.new")
	p.workAs(t, p.URI, w)
	c := p.consume(t, "orders.new", nil)
	p.Publish(t, "", "orders.new", amqp.Publishing{})
	failed := p.awaitFailed(t, "exhausted")
	if n := len(c.deliveries()); n != 3 || failed.Headers["retry-queue"] != "orders.new" {
		t.Errorf("%d deliveries, want 3; headers %v", n, failed.Headers)
	}
}

// What a consumer said about a failure does not describe a later one, about which it says nothing.
func TestLaterNackRemovesWhatTheConsumerSaid(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.work(t)
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "dead-letter-error": "no such order"}})
	p.rejectOne(t)
	if failed := p.awaitFailed(t, "exhausted"); failed.Headers["dead-letter-error"] != nil || failed.Headers["retry-delay-ms"] != nil {
		t.Errorf("headers %v", failed.Headers)
	}
}

func TestConsumerSaysNever(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 4, "orders.created")
	p.work(t)
	p.Publish(t, "orders.dlx", "eu.orders", amqp.Publishing{Headers: amqp.Table{
		"retry-queue": "orders.created", "retry": "never", "dead-letter-error": "no such order",
	}})
	failed := p.awaitFailed(t, "unrecoverable")
	if failed.Headers["retry"] != nil || failed.Headers["dead-letter-error"] != "no such order" || failed.RoutingKey != "eu.orders" {
		t.Errorf("key %q, headers %v", failed.RoutingKey, failed.Headers)
	}
	p.expectEmpty(t, "orders.created")
}

func TestConsumerAsksForADelay(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "300ms", "500ms"}, 9, "orders.created")
	p.work(t)
	for _, test := range []struct {
		after any
		delay int64
	}{
		{int32(0), 100},
		{int64(101), 300},
		{uint8(200), 300},
		{int64(math.MaxInt64), 500},
		{int64(-1), 100},
		{"300", 300},
		{300.0, 300},
	} {
		p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "retry-after-ms": test.after}})
		d := p.await(t, "orders.created")
		if d.Headers["retry-delay-ms"] != test.delay || d.Headers["retry-after-ms"] != nil || d.Headers["retry-count"] != int64(1) {
			t.Errorf("retry-after-ms %v: headers %v, want a delay of %d ms", test.after, d.Headers, test.delay)
		}
	}
}

func TestConsumerNamesNoKnownQueue(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 4, "orders.created")
	p.work(t)
	for _, queue := range []any{nil, "unknown", "orders.inbox", "orders.retry.100ms", int64(1)} {
		p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": queue}})
		p.awaitFailed(t, "unknown_queue")
	}
}
