package worker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A binding key of ours as a routing key would route the message a second time with each attempt.
func TestRoutingKeyLikeOursDoesNotDouble(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"delay:200ms", "delay:100ms", "return:orders.paid", "return:orders.created"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 4, "orders.created", "orders.paid")
			p.set(t, "POST", p.Path("bindings", "e", "amq.topic", "q", "orders.created"), map[string]any{"routing_key": key})
			p.work(t)
			created, paid := p.consume(t, "orders.created", nil), p.consume(t, "orders.paid", nil)
			p.Publish(t, "amq.topic", key, amqp.Publishing{})
			failed := p.awaitFailed(t, "exhausted")
			if failed.Headers["retry-routing-key"] != key || failed.Headers["retry-exchange"] != "amq.topic" {
				t.Errorf("headers %v", failed.Headers)
			}
			if n, m := len(created.deliveries()), len(paid.deliveries()); n != 4 || m != 0 {
				t.Errorf("%d and %d deliveries, want 4 and 0", n, m)
			}
			p.expectEmpty(t, p.names.FailedQueue())
		})
	}
}

func TestCopiesOfTheMessageAreNotMade(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created", "orders.paid")
	p.work(t)
	created, paid := p.consume(t, "orders.created", nil), p.consume(t, "orders.paid", nil)
	p.Publish(t, "", "orders.created", amqp.Publishing{Headers: amqp.Table{"CC": []any{"orders.paid"}}})
	p.awaitFailed(t, "exhausted")
	p.awaitFailed(t, "exhausted")
	if n, m := len(created.deliveries()), len(paid.deliveries()); n != 3 || m != 3 {
		t.Errorf("%d and %d deliveries, want 3 each", n, m)
	}
	p.expectEmpty(t, p.names.FailedQueue())
}

// The worker's configuration may be newer or older than the topology.
func TestDelayThatIsNotBound(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		unbound []string
		delay   int64 // that the message gets
	}{
		"next longer":  {[]string{"200ms"}, 400},
		"then shorter": {[]string{"200ms", "400ms"}, 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"200ms", "100ms", "400ms"}, 2, "orders.created")
			p.unbindDelays(t, test.unbound...)
			p.work(t)
			c := p.consume(t, "orders.created", nil)
			p.Publish(t, "", "orders.created", amqp.Publishing{})
			p.awaitFailed(t, "exhausted")
			if second := c.deliveries()[1]; second.Headers["retry-delay-ms"] != test.delay {
				t.Errorf("headers %v, want a delay of %d ms", second.Headers, test.delay)
			}
		})
	}
}

// A return that is missed is a message that is lost: its confirm arrives all the same.
func TestReturnsAreNeverMissed(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 9, "orders.created")
	p.set(t, "DELETE", p.Path("bindings", "e", "orders.retry", "q", "orders.retry.200ms")+"/delay:200ms", nil)
	const messages = 4_000
	ids := p.fillInbox(t, messages, func(i int) amqp.Publishing {
		// Every other message asks for the delay that is not bound.
		return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "retry-after-ms": int32(100 + 100*(i%2))}}
	})
	p.work(t)
	p.awaitAll(t, ids)
	p.expectEmpty(t, p.names.FailedQueue())
}

func TestZeroDelayReturnsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"0s", "10s"}, 3, "orders.created")
	p.work(t)
	var times []time.Time
	c := p.consume(t, "orders.created", func(d amqp.Delivery) error {
		times = append(times, time.Now())
		return d.Reject(false)
	})
	p.Publish(t, "", "orders.created", amqp.Publishing{})
	p.awaitFailed(t, "exhausted")
	if n := len(c.deliveries()); n != 3 {
		t.Fatalf("%d deliveries, want 3", n)
	}
	if first, second := times[1].Sub(times[0]), times[2].Sub(times[1]); first >= 10*time.Second || second < 10*time.Second {
		t.Errorf("waits of %s and %s, want 0 and 10 s", first, second)
	}
}
