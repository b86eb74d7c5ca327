package undeliverable_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/undeliverable"
)

// newInbox returns an inbox with a failed queue, and a work queue "created" that dead-letters to it.
func newInbox(t *testing.T, queueType string) (*brokertest.Broker, *undeliverable.Inbox) {
	t.Helper()
	b := brokertest.New(t)
	b.Needs(t, brokertest.Release(">= 4.0"))
	uri, err := amqpconn.ParseURI(b.URI)
	require.NoError(t, err)
	p := deadletter.NewPipeline(pipeline.Worker{
		Version: 1, Name: "orders", Vhost: b.Vhost, Delays: []string{"1s"}, MaxAttempts: 2,
		WorkQueues: map[string]pipeline.WorkerQueue{"created": {}},
	})
	b.DeclareQueue(t, "created", queueType, map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.inbox"})
	limit := map[string]any{}
	if queueType == topology.Quorum {
		limit["x-delivery-limit"] = 1000 // as in a pipeline's policy
	}
	b.DeclareQueue(t, "orders.inbox", queueType, limit)
	b.DeclareQueue(t, "orders.failed", queueType, nil)
	ch := b.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("orders.failed", "fanout", true, false, false, false, nil))
	require.NoError(t, ch.QueueBind("orders.failed", "", "orders.failed", false, nil))
	return b, &undeliverable.Inbox{
		URI: uri, Client: amqpconn.Client{Name: t.Name()},
		Flow: session.NewRetrying(p, time.Hour, metrics.New("test").Flow(p), slog.New(slog.DiscardHandler)),
	}
}

// bad is a message that AMQP 0-9-1 cannot carry.
var bad = amqp10.Message{ApplicationProperties: amqp10.Map(amqp10.Text("k"), amqp10.UUID())}

// expectTaken looks at this many other messages, and expects this many to be taken.
func expectTaken(t *testing.T, inbox *undeliverable.Inbox, looks, want int) {
	t.Helper()
	taken, err := inbox.Take(t.Context(), looks)
	require.NoError(t, err)
	require.Equal(t, want, taken)
}

// A message that AMQP 0-9-1 can carry stays in place and unchanged, after any number of looks.
func TestTakeLeavesOtherMessages(t *testing.T) {
	t.Parallel()
	const looks = 25
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		for name, raw := range map[string][]byte{
			"AMQP 1.0":   {},
			"AMQP 0-9-1": nil,
		} {
			t.Run(queueType+" "+name, func(t *testing.T) {
				t.Parallel()
				b, inbox := newInbox(t, queueType)
				client := amqp10.Dial(t, b)
				if raw != nil {
					client.To(t, "/queues/created").Send(t, amqp10.Message{
						Properties:            amqp10.List(amqp10.UUID(), amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Fixed(0x53, 7), amqp10.Symbol("a/b")),
						ApplicationProperties: amqp10.Map(amqp10.Text("k"), amqp10.Text("v")),
						Data:                  []byte("body"),
					}.Encode())
				} else {
					b.Publish(t, "", "created", amqp.Publishing{
						MessageId: "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f", CorrelationId: "7", ContentType: "a/b",
						Headers: amqp.Table{"k": "v", "nested": amqp.Table{"k": []any{int64(1), nil, time.Unix(1, 0)}}}, Body: []byte("body"),
					})
				}
				client.Reject(t, "created", 1)
				for range looks {
					expectTaken(t, inbox, 1, 0)
				}
				d, ok := b.Get(t, "orders.inbox")
				if !ok || string(d.Body) != "body" || d.ContentType != "a/b" || d.CorrelationId != "7" || d.Headers["k"] != "v" ||
					d.MessageId != "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f" {
					t.Fatalf("%t: %+v", ok, d)
				}
				if deaths := d.Headers["x-death"].([]any); len(deaths) != 1 || deaths[0].(amqp.Table)["queue"] != "created" {
					t.Errorf("x-death %v", deaths)
				}
				// The rejection counts. RabbitMQ 4.0 also counts each look, and each delivery of its trial.
				if count, _ := d.Headers["x-delivery-count"].(int64); count > 1 && b.VersionAtLeast("4.3") || count > 3*looks+1 {
					t.Errorf("x-delivery-count %d", count)
				}
				if _, ok := b.Get(t, "orders.failed"); ok {
					t.Error("a copy is in the failed queue")
				}
			})
		}
	}
}

func TestTakeEndsWhenTheInboxIsEmpty(t *testing.T) {
	t.Parallel()
	b, inbox := newInbox(t, topology.Quorum)
	sender := amqp10.Dial(t, b).To(t, "/queues/orders.inbox")
	for range 3 {
		sender.Send(t, bad.Encode())
	}
	expectTaken(t, inbox, 1, 3)
	for i := range 3 {
		if d, ok := b.Get(t, "orders.failed"); !ok || d.Headers["dead-letter-reason"] != "malformed" {
			t.Errorf("%d: %v", i, d.Headers)
		}
	}
}

// The undeliverable message is behind others, which stay.
func TestTakeLooksBehindOthers(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		b, inbox := newInbox(t, queueType)
		for i := range 3 {
			b.Publish(t, "", "orders.inbox", amqp.Publishing{MessageId: fmt.Sprint(i)})
		}
		amqp10.Dial(t, b).To(t, "/queues/orders.inbox").Send(t, bad.Encode())
		expectTaken(t, inbox, 3, 0)
		expectTaken(t, inbox, 4, 1)
		for range 3 {
			if _, ok := b.Get(t, "orders.inbox"); !ok {
				t.Error("a message is gone")
			}
		}
	})
}

// The body comes in several frames.
func TestTakeKeepsLargeBodies(t *testing.T) {
	t.Parallel()
	b, inbox := newInbox(t, topology.Classic)
	body := bytes.Repeat([]byte("0123456789"), 12_000)
	amqp10.Dial(t, b).To(t, "/queues/orders.inbox").Send(t, amqp10.Message{
		ApplicationProperties: amqp10.Map(amqp10.Text("k"), amqp10.UUID()), Data: body,
	}.Encode())
	expectTaken(t, inbox, 1, 1)
	if d, ok := b.Get(t, "orders.failed"); !ok || !bytes.Equal(d.Body, body) {
		t.Errorf("%t: a body of %d bytes, want %d", ok, len(d.Body), len(body))
	}
}

// A message that does not fit a frame is parked without its headers.
func TestTakeParksMessagesWithTooManyHeaders(t *testing.T) {
	t.Parallel()
	b, inbox := newInbox(t, topology.Quorum)
	properties := []amqp10.Value{amqp10.Text("k"), amqp10.UUID()}
	for i := range 9000 {
		properties = append(properties, amqp10.Text(fmt.Sprint(i)), amqp10.Null)
	}
	amqp10.Dial(t, b).To(t, "/queues/orders.inbox").Send(t, amqp10.Message{
		ApplicationProperties: amqp10.Map(properties...), Data: []byte("body"),
	}.Encode())
	expectTaken(t, inbox, 1, 1)
	if d, ok := b.Get(t, "orders.failed"); !ok || string(d.Body) != "body" {
		t.Errorf("%t: %+v", ok, d)
	}
}

// A copy that one of several queues refuses is not published to all of them again.
func TestTakeParksBesideAFullQueue(t *testing.T) {
	t.Parallel()
	b, inbox := newInbox(t, topology.Quorum)
	b.DeclareQueue(t, "audit", topology.Classic, map[string]any{"x-max-length": 0, "x-overflow": "reject-publish"})
	b.DeclareQueue(t, "orders.retry.0.refused", topology.Quorum, nil)
	ch := b.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("orders.retry", "direct", true, false, false, false, nil))
	for _, way := range [][3]string{{"audit", "", "orders.failed"}, {"orders.retry.0.refused", pipeline.RefusedKey, "orders.retry"}} {
		require.NoError(t, ch.QueueBind(way[0], way[1], way[2], false, nil))
	}
	amqp10.Dial(t, b).To(t, "/queues/orders.inbox").Send(t, bad.Encode())
	expectTaken(t, inbox, 1, 1)
	for _, queue := range []string{"orders.failed", "orders.retry.0.refused"} {
		if d, ok := b.Get(t, queue); !ok || d.Headers["dead-letter-reason"] != "malformed" {
			t.Errorf("%s: %t, %v", queue, ok, d.Headers)
		}
	}
}
