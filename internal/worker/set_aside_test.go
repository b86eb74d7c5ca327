package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Headers that a delayed exchange sets aside stay with the message. They survive each failure in a pipeline behind it,
// the failed queue, and a move to another pipeline.
func TestWhatADelayedExchangeSetsAsideStays(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "work")
	other := &testPipeline{testVhost: p.testVhost, spec: newSpec(topology.Quorum, []string{"100ms"}, 2, "moved"), names: "other"}
	other.spec.Name, other.spec.Vhost = "other", p.Vhost
	other.Create(t, other.spec.Expand())
	e := newExchangeIn(t, p.testVhost, "events", "1m", "100ms")
	require.NoError(t, p.Channel(t).QueueBind("work", "work", e.names.DeliverExchange(), false, nil))
	configured, err := json.Marshal(map[string]any{
		"pipelines": []pipeline.Worker{p.spec.Worker(), other.spec.Worker()}, "delayed_exchanges": []delayed.Worker{e.spec.Worker()},
	})
	require.NoError(t, err)
	p.workOn(t, p.URI, configured, func(context.Context, *worker.Options) {})
	failing, moved := p.consume(t, "work", nil), p.consume(t, "moved", nil)

	const inAMQP10 = "1.0"
	messages := 2
	for _, delay := range []int{0, 300} {
		e.publish(t, "work", int32(delay), amqp.Publishing{
			MessageId: fmt.Sprint(delay), UserId: p.user(t), DeliveryMode: amqp.Transient,
			Headers: amqp.Table{"retry-after-payment": "yes", "delay-mine": "no"},
		})
	}
	if p.VersionAtLeast("4.0") {
		messages++
		amqp10.Dial(t, p.Broker).To(t, "/exchanges/events/work").Send(t, amqp10.Message{
			Header:      amqp10.List(amqp10.Fixed(0x42)), // not durable
			Annotations: amqp10.Map(amqp10.Symbol("x-delay"), amqp10.Fixed(0x54, 100)),
			Properties: amqp10.List(amqp10.Text(inAMQP10), amqp10.Binary([]byte(p.user(t))), amqp10.Null, amqp10.Null,
				amqp10.Text("amq.rabbitmq.reply-to")),
		}.Encode())
	}
	expect := func(d amqp.Delivery) {
		t.Helper()
		mode, reply := any(int64(1)), any(nil)
		if d.MessageId == inAMQP10 {
			mode, reply = int64(0), "amq.rabbitmq.reply-to"
		}
		if d.Headers["delay-user-id"] != p.user(t) || d.Headers["delay-delivery-mode"] != mode || d.Headers["delay-reply-to"] != reply ||
			d.MessageId != inAMQP10 && (d.Headers["retry-after-payment"] != "yes" || d.Headers["delay-mine"] != "no") {
			t.Errorf("%s, failure %v, %v: %v", d.MessageId, d.Headers["retry-count"], d.Headers["retry-pipeline"], d.Headers)
		}
	}
	for range messages {
		d := p.awaitFailed(t, "exhausted")
		expect(d)
		p.Publish(t, "", "moved", amqp.Publishing{MessageId: d.MessageId, Headers: d.Headers, DeliveryMode: amqp.Persistent})
	}
	for range messages {
		expect(other.awaitFailed(t, "exhausted"))
	}
	for _, d := range append(failing.deliveries(), moved.deliveries()...) {
		expect(d)
	}
	if n := len(failing.deliveries()) + len(moved.deliveries()); n != 5*messages {
		t.Errorf("%d deliveries, want %d", n, 5*messages)
	}
}
