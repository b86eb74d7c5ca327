package worker_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestRetriesWithBackoffUntilExhausted(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "300ms", "900ms"}, 4, "orders.created")
	p.work(t)
	c := p.consume(t, "orders.created", nil)

	sent := amqp.Publishing{
		Headers: amqp.Table{
			"tenant": "a", "n": int32(7), "ratio": 0.5, "nested": amqp.Table{"list": []any{"x", int64(1), nil}},
			"bytes": []byte{0, 255}, "when": time.Unix(1_700_000_000, 0), "decimal": amqp.Decimal{Scale: 2, Value: -5},
		},
		ContentType: "application/json", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, Priority: 3,
		CorrelationId: "c-1", ReplyTo: "replies", MessageId: "m-1", Timestamp: time.Unix(1_700_000_000, 0),
		Type: "order", AppId: "shop", Body: []byte("\x00 body \xff"),
	}
	before := time.Now().UnixMilli()
	p.Publish(t, "", "orders.created", sent)
	failed := p.awaitFailed(t, "exhausted")

	got := c.deliveries()
	if len(got) != 4 {
		t.Fatalf("%d deliveries, want 4", len(got))
	}
	for i, d := range append(got, failed) {
		if d.RoutingKey != "orders.created" {
			t.Errorf("delivery %d has routing key %q", i+1, d.RoutingKey)
		}
		if diff := cmp.Diff(sent, publishingOf(d, sent.Headers)); diff != "" {
			t.Errorf("delivery %d is not what was sent:\n%s", i+1, diff)
		}
	}
	for i, d := range got[1:] {
		if d.Headers["retry-count"] != int64(i+1) || d.Headers["retry-delay-ms"] != []int64{100, 300, 900}[i] || d.Headers["dead-letter-reason"] != nil {
			t.Errorf("delivery %d has headers %v", i+2, d.Headers)
		}
	}
	expectHeaders(t, failed, amqp.Table{
		"retry-count": int64(4), "retry-max-attempts": int64(4), "retry-pipeline": "orders", "retry-queue": "orders.created",
		"retry-exchange": "", "retry-routing-key": "orders.created", "retry-reason": "rejected", "retry-delay-ms": nil,
		"dead-letter-reason": "exhausted", "CC": []any{"failed:orders.created"},
	})
	first, last := failed.Headers["retry-first-failed-at"].(int64), failed.Headers["retry-last-failed-at"].(int64)
	if first < before || last < first+1_300 || failed.Headers["dead-letter-at"] != last {
		t.Errorf("first failed at %d, last at %d, given up at %v; sent at %d", first, last, failed.Headers["dead-letter-at"], before)
	}
	for _, key := range []string{"x-death", "x-first-death-queue"} {
		require.NotContains(t, failed.Headers, key)
	}
	p.expectEmpty(t, p.names.FailedQueue())
}

// From RabbitMQ 4.0 to 4.2, a quorum queue without a limit dead-letters a message after 21 returns.
func TestLooksAtARetryQueueReturnNothingEarly(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"1h"}, 2, "orders.created")
	queue := p.names.RetryQueue(time.Hour)
	p.Publish(t, "", queue, amqp.Publishing{})
	ch := p.Channel(t)
	for range 60 {
		p.getOne(t, ch, queue, func(d amqp.Delivery) error { return d.Nack(false, true) })
	}
	p.expectEmpty(t, "orders.created")
	p.await(t, queue)
}

// publishingOf returns a delivery as a publisher would send it, with only the headers that were sent.
func publishingOf(d amqp.Delivery, sent amqp.Table) amqp.Publishing {
	return amqp.Publishing{
		Headers: some(d.Headers, sent), ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode,
		Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body,
	}
}

func TestReasonsThatAreRetriedWhenConfigured(t *testing.T) {
	t.Parallel()
	spec := newSpec(topology.Quorum, []string{"100ms"}, 3, "orders.created")
	spec.RetryOn = []string{pipeline.ReasonRejected, pipeline.ReasonExpired}
	p := newPipelineOf(t, spec)
	p.work(t)
	p.Publish(t, "", "orders.created", amqp.Publishing{Expiration: "1"})
	if d := p.await(t, "orders.created"); d.Headers["retry-reason"] != "expired" || d.Expiration != "" {
		t.Errorf("expiration %q, headers %v", d.Expiration, d.Headers)
	}
}

func TestNamesOfAnyCharacters(t *testing.T) {
	t.Parallel()
	queues := []string{"orders created", "orders/created", "orders%2Fcreated%", ".orders..", "bestellung-größe-日本", "a|b$^(c)"}
	p := newPipeline(t, "my pipeline.%ü", []string{"100ms", "1.5s"}, 2, queues...)
	p.work(t)
	for _, queue := range queues {
		c := p.consume(t, queue, nil)
		p.Publish(t, "", queue, amqp.Publishing{})
		expectHeaders(t, p.awaitFailed(t, "exhausted"), amqp.Table{"retry-queue": queue})
		require.Len(t, c.deliveries(), 2)
	}
}

// The guide describes how to put failed messages back by hand.
func TestFailedMessageThatIsPutBack(t *testing.T) {
	t.Parallel()
	const queue, key = "orders.created", "order.created.eu"
	fresh := func(d amqp.Delivery) amqp.Table {
		h := maps.Clone(d.Headers)
		maps.DeleteFunc(h, func(name string, _ any) bool {
			return strings.HasPrefix(name, "retry-") || strings.HasPrefix(name, "dead-letter-") || name == "x-death"
		})
		return h
	}
	for name, test := range map[string]struct {
		exchange, key string
		headers       func(amqp.Delivery) amqp.Table
		// deliveries is how many deliveries follow, the first with this key. Then count is in the failed queue.
		deliveries int
		delivered  string
		count      int64
	}{
		"to its work queue":                            {"", queue, nil, 1, queue, 4},
		"to its work queue, afresh":                    {"", queue, fresh, 3, queue, 3},
		"to the return exchange":                       {"orders.return", key, nil, 1, queue, 4},
		"to the return exchange, addressed":            {"orders.return", "return:" + queue, nil, 1, "return:" + queue, 4},
		"to the return exchange, addressed and afresh": {"orders.return", key, withCC(fresh, "return:"+queue), 3, key, 3},
		"to the dead-letter exchange":                  {"orders.dlx", key, nil, 0, "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, queue, "orders.paid")
			p.work(t)
			p.set(t, "PUT", p.Path("exchanges", "shop"), map[string]any{"type": "topic", "durable": true})
			p.set(t, "POST", p.Path("bindings", "e", "shop", "q", queue), map[string]any{"routing_key": "order.created.*"})
			c := p.consume(t, queue, nil)
			p.Publish(t, "shop", key, amqp.Publishing{MessageId: "m", Headers: amqp.Table{"tenant": "a"}, Body: []byte("body")})
			failed := p.awaitFailed(t, "exhausted")
			before := len(c.deliveries())

			copied := publishingOf(failed, failed.Headers)
			if test.headers != nil {
				copied.Headers = test.headers(failed)
			}
			p.Publish(t, test.exchange, test.key, copied)
			again := p.awaitFailed(t, "exhausted")
			p.expectEmpty(t, p.names.FailedQueue())

			after := c.deliveries()[before:]
			if len(after) != test.deliveries || again.Headers["retry-count"] != test.count {
				t.Errorf("%d deliveries, then retry-count %v; want %d and %d", len(after), again.Headers["retry-count"], test.deliveries, test.count)
			}
			if len(after) > 0 && after[0].RoutingKey != test.delivered {
				t.Errorf("routing key %q, want %q", after[0].RoutingKey, test.delivered)
			}
			if string(again.Body) != "body" || again.MessageId != "m" || again.Headers["tenant"] != "a" {
				t.Errorf("%s %q, headers %v", again.MessageId, again.Body, again.Headers)
			}
		})
	}
}

func withCC(headers func(amqp.Delivery) amqp.Table, addresses ...any) func(amqp.Delivery) amqp.Table {
	return func(d amqp.Delivery) amqp.Table {
		h := headers(d)
		h["CC"] = addresses
		return h
	}
}

// A consumer publishes its message to the dead-letter exchange with a copy of all headers. That looks like a message
// whose queue vanished.
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
	expectHeaders(t, failed, amqp.Table{"retry-routing-key": "orders.created", "dead-letter-error": "no such order"})
	require.Len(t, c.deliveries(), 4)
	p.expectEmpty(t, p.names.FailedQueue())
}

// If a message was dead-lettered on its way to the work queue, a copy of its x-death names a queue outside the
// pipeline.
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
		// This is not the x-death of the retry queue, which is known to belong to the pipeline.
		copied.Headers["x-death"], copied.Headers["retry-queue"] = original["x-death"], "orders.created"
		if err := ch.PublishWithContext(t.Context(), "orders.dlx", "consumer", true, false, copied); err != nil {
			return err
		}
		return d.Ack(false)
	})
	p.Publish(t, "", "app.delay", amqp.Publishing{})
	failed := p.awaitFailed(t, "exhausted")
	expectHeaders(t, failed, amqp.Table{"retry-queue": "orders.created"})
	require.Len(t, c.deliveries(), 4)
}
