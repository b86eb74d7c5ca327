package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
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
	want := amqp.Table{
		"retry-count": int64(4), "retry-max-attempts": int64(4), "retry-pipeline": "orders", "retry-queue": "orders.created",
		"retry-exchange": "", "retry-routing-key": "orders.created", "retry-reason": "rejected", "retry-delay-ms": nil,
		"dead-letter-reason": "exhausted",
	}
	for key, value := range want {
		if failed.Headers[key] != value {
			t.Errorf("%s is %v, want %v", key, failed.Headers[key], value)
		}
	}
	first, last := failed.Headers["retry-first-failed-at"].(int64), failed.Headers["retry-last-failed-at"].(int64)
	if first < before || last < first+1_300 || failed.Headers["dead-letter-at"] != last {
		t.Errorf("first failed at %d, last at %d, given up at %v; sent at %d", first, last, failed.Headers["dead-letter-at"], before)
	}
	for _, key := range []string{"x-death", "x-first-death-queue"} {
		if _, found := failed.Headers[key]; found {
			t.Errorf("the failed message still has %s", key)
		}
	}
	if address := fmt.Sprint(failed.Headers["CC"]); address != "[failed:orders.created]" {
		t.Errorf("CC is %s", address)
	}
	p.expectEmpty(t, p.names.FailedQueue())
}

// From RabbitMQ 4.0 to 4.2 a quorum queue without a limit dead-letters what is returned to it 21 times.
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

// publishingOf is a delivery as it would be published, with those of its headers that were sent.
func publishingOf(d amqp.Delivery, sent amqp.Table) amqp.Publishing {
	headers := amqp.Table{}
	for key := range sent {
		headers[key] = d.Headers[key]
	}
	return amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode,
		Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body,
	}
}
