package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Each message comes once, to the queue of its key, and not before its time.
func TestMessagesAreDelayed(t *testing.T) {
	t.Parallel()
	queues := []string{"eu.mail", "eu.print", "us.mail", "us.print"}
	e := newExchange(t, "1h", "100ms", queues...)
	r := e.work(t)
	deliveries := e.collect(t, queues...)
	sent := e.publishMany(t, "", 400, 8*time.Second, queues...)
	if n := awaitDue(t, sent, deliveries); n > 0 {
		t.Errorf("%d messages came twice", n)
	}
	r.awaitReady(t, "")
	if n := r.Log.Count("level=WARN") + r.Log.Count("level=ERROR"); n > 0 {
		t.Errorf("the log has warnings:\n%s", r.Log)
	}
	e.expectEmpty(t, e.names.UnroutedQueue())
}

// What clients of many languages write is read; what cannot be is delivered at once.
func TestDelaysOfEveryType(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1h", "50ms", "work")
	r := e.work(t)
	deliveries := e.collect(t, "work")
	values := []any{int8(100), uint8(200), int16(150), int32(150), int64(150), "150", float32(150.9), 150.9}
	if e.VersionAtLeast("3.11") {
		values = append(values, uint16(150), uint32(150))
	}
	for i, value := range values {
		began := time.Now()
		e.publish(t, "work", value, amqp.Publishing{MessageId: fmt.Sprint(i)})
		if d := brokertest.Receive(t, deliveries); d.MessageId != fmt.Sprint(i) || d.at.Sub(began) < 100*time.Millisecond {
			t.Errorf("%T %v came after %s", value, value, d.at.Sub(began))
		} else if n, ok := d.Headers["x-delay"].(int32); !ok || n > -100 || n < -200 {
			t.Errorf("%T %v is %v after its wait", value, value, d.Headers["x-delay"])
		}
	}
	for _, value := range []any{nil, int32(0), int64(-1), "soon", true} {
		e.publish(t, "work", value, amqp.Publishing{})
		if d := brokertest.Receive(t, deliveries); d.Headers["x-delay"] != value || d.Headers["delay-0"] != nil || d.Headers["x-death"] != nil {
			t.Errorf("%v: headers %v", value, d.Headers)
		}
	}
	r.awaitSeries(t, map[string]float64{
		"messages_received_total": float64(len(values) + 5), "messages_delayed_total": float64(len(values)), "messages_delivered_total": 5,
		"messages_unrouted_total{reason=delay_too_long}": 0, "ready": 1, "consuming": 1, "session_restarts_total": 0,
	})
}

// Nothing that a publisher writes gets a message delivered early, stops it or others, or is lost.
func TestPublishersHeadersAndProperties(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1h", "100ms", "work", "copy", "blind")
	e.work(t)
	deliveries := e.collect(t, "work", "copy", "blind")
	deaths := make([]any, 40)
	for i := range deaths {
		deaths[i] = amqp.Table{
			"queue": e.names.Level(delayed.Level{Unit: 100 * time.Millisecond, Bit: i % 4}), "reason": "expired", "count": int64(1),
			"exchange": e.names.Exchange(), "routing-keys": []any{"work"}, "time": time.Unix(1, 0),
		}
	}
	m := amqp.Publishing{
		Headers: amqp.Table{
			"x-death": deaths, "x-first-death-queue": "events.delay.100ms.3", "x-first-death-reason": "expired", "x-first-death-exchange": "",
			"delay-0": "true", "delay-1": int32(1), "delay-2": false, "delay-3": false, "delay-30": true,
			"CC": []any{"copy"}, "BCC": []any{"blind"}, "mine": "kept", "x-mine": int32(5),
		},
		ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Transient, Priority: 9, CorrelationId: "c", ReplyTo: "r", Expiration: "60000",
		MessageId: "m", Timestamp: time.Unix(5, 0), Type: "t", UserId: e.user(t), AppId: "a", Body: []byte("body"),
	}
	began := time.Now()
	e.publish(t, "work", int32(1500), m)
	queues := map[string]bool{}
	for range 2 {
		d := brokertest.Receive(t, deliveries)
		queues[d.queue] = true
		if took := d.at.Sub(began); took < 1500*time.Millisecond || took > brokertest.Patience {
			t.Errorf("it came to %s after %s", d.queue, took)
		}
		if d.RoutingKey != "work" || d.ContentType != m.ContentType || d.ContentEncoding != m.ContentEncoding || d.CorrelationId != "c" || d.ReplyTo != "r" ||
			d.MessageId != "m" || !d.Timestamp.Equal(m.Timestamp) || d.Type != "t" || d.AppId != "a" || string(d.Body) != "body" ||
			d.DeliveryMode != amqp.Persistent || d.Priority != 0 || d.Expiration != "" || d.UserId != "" {
			t.Errorf("%+v", d.Delivery)
		}
		for key, want := range map[string]any{
			"mine": "kept", "x-mine": int32(5), "x-delay": int32(-1500), "delay-30": nil, "delay-user-id": m.UserId,
			"delay-expiration": "60000", "delay-priority": int64(9), "delay-delivery-mode": int64(1),
		} {
			if d.Headers[key] != want {
				t.Errorf("%s is %v, want %v", key, d.Headers[key], want)
			}
		}
		if list, _ := d.Headers["x-death"].([]any); len(list) != 4 {
			t.Errorf("x-death has %d entries, want one for each level that it waited in: %v", len(list), list)
		}
	}
	if !queues["work"] || !queues["copy"] {
		t.Errorf("it came to %v", queues)
	}
	// The level is not frozen.
	e.publish(t, "work", int32(800), amqp.Publishing{MessageId: "after"})
	if d := brokertest.Receive(t, deliveries); d.MessageId != "after" {
		t.Errorf("%+v", d.Delivery)
	}
}

// What is not delivered is in the unrouted queue, and says why if the worker knows.
func TestRefusedMessagesAreUnrouted(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "1s", "work")
	r := e.work(t)
	r.awaitReady(t, "")
	expect := func(id string, reason any) {
		t.Helper()
		d := e.await(t, e.names.UnroutedQueue())
		if d.MessageId != id || d.Headers["dead-letter-reason"] != reason || (d.Headers["dead-letter-at"] == nil) != (reason == nil) {
			t.Errorf("%q with %v, want %q with %v", d.MessageId, d.Headers, id, reason)
		}
	}
	e.publish(t, "work", int64(60_001), amqp.Publishing{MessageId: "long", Expiration: "60000", Headers: amqp.Table{"CC": []any{"other"}}})
	expect("long", "delay_too_long")
	e.publish(t, "work", "99999999999999999999", amqp.Publishing{MessageId: "longest"})
	expect("longest", "delay_too_long")
	e.publish(t, "nobody", int32(0), amqp.Publishing{MessageId: "nobody's"})
	expect("nobody's", nil)
	e.publish(t, "nobody", int32(500), amqp.Publishing{MessageId: "nobody's later"})
	expect("nobody's later", nil)
	// The broker moves these untouched.
	e.publish(t, "work", int32(500), amqp.Publishing{MessageId: "large", Headers: amqp.Table{"large": strings.Repeat("x", 130_400)}})
	expect("large", nil)
	nested := amqp.Table{}
	for range 40 {
		nested = amqp.Table{"k": nested}
	}
	e.publish(t, "work", int32(500), amqp.Publishing{MessageId: "undecodable", Headers: nested})
	brokertest.Eventually(t, func() error { return e.countIs(t, e.names.UnroutedQueue(), 1) })
	if got := e.take(t, e.names.UnroutedQueue(), "ack_requeue_false"); len(got) != 1 || got[0].Properties.ID != "undecodable" {
		t.Errorf("%+v", got)
	}
	e.publish(t, "work", int32(500), amqp.Publishing{MessageId: "good"})
	if d := e.await(t, "work"); d.MessageId != "good" {
		t.Errorf("%+v", d)
	}
	r.awaitSeries(t, map[string]float64{
		"messages_unrouted_total{reason=delay_too_long}": 2, "messages_unrouted_total{reason=malformed}": 2, "messages_delayed_total": 2, "messages_delivered_total": 1,
		"session_restarts_total": 0, "ready": 1,
	})
}

// What only AMQP 1.0 can carry does not stop the others.
// An exchange of an application that is bound to the one that delivers, and has no queue for a key: RabbitMQ does not use the
// alternate exchange then. What has no delay does not pile up in the sidecar.
func TestUnroutableBehindAnExchangeOfOthers(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	e.set(t, http.MethodPut, e.Path("exchanges", "shop"), map[string]any{"type": "topic"})
	e.set(t, http.MethodPost, e.Path("bindings", "e", e.names.DeliverExchange(), "e", "shop"), map[string]any{"routing_key": "shop.#"})
	r := e.workWith(t, func(_ context.Context, o *worker.Options) { o.Prefetch = 10 })
	const n = 30
	for i := range n {
		e.publish(t, "shop.refund", 0, amqp.Publishing{MessageId: fmt.Sprint("refund-", i)})
	}
	e.publish(t, "work", 0, amqp.Publishing{MessageId: "other"})
	if d := e.await(t, "work"); d.MessageId != "other" {
		t.Errorf("%+v", d)
	}
	brokertest.Eventually(t, func() error { return e.countIs(t, e.names.UnroutedQueue(), n) })
	if d, _ := e.Get(t, e.names.UnroutedQueue()); d.Headers["dead-letter-reason"] != "unroutable" || d.RoutingKey != "shop.refund" {
		t.Errorf("%+v", d)
	}
	r.awaitReady(t, "")
}

func TestDelayedExchangeTakesUndeliverableMessages(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	if !e.VersionAtLeast("4.0") {
		t.Skipf("RabbitMQ %s does not speak AMQP 1.0", e.Version)
	}
	r := e.work(t)
	sender := amqp10.Dial(t, e.Broker).To(t, "/exchanges/"+e.names.Exchange())
	for _, more := range [][]amqp10.Value{nil, {amqp10.Text("CC"), amqp10.Text("a"), amqp10.Text("BCC"), amqp10.UUID()}} {
		m := withUUID("bad")
		m.ApplicationProperties = amqp10.Map(append(more, amqp10.Text("order"), amqp10.UUID())...)
		sender.Send(t, m.Encode())
		e.publish(t, "work", int32(100), amqp.Publishing{MessageId: "good"})
		if d := e.await(t, "work"); d.MessageId != "good" {
			t.Errorf("%+v", d)
		}
		d := e.await(t, e.names.UnroutedQueue())
		if text, _ := d.Headers["dead-letter-error"].(string); d.MessageId != "bad" || d.Headers["dead-letter-reason"] != "malformed" || !strings.Contains(text, "a UUID") {
			t.Errorf("%+v", d)
		}
	}
	r.awaitSeries(t, map[string]float64{"messages_unrouted_total{reason=malformed}": 2, "messages_delayed_total": 2})
}

// A message that the broker can deliver over no protocol is gone at its delivery limit, which is reached at once. Here it is lower.
func TestMessageOfNoProtocolDoesNotStopADelayedExchange(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	if !e.VersionAtLeast("4.0") {
		t.Skipf("RabbitMQ %s does not speak AMQP 1.0", e.Version)
	}
	e.set(t, "PUT", e.Path("policies", "limit"), map[string]any{
		"pattern": "inbox$", "apply-to": "queues", "priority": 100_000, "definition": map[string]any{"delivery-limit": 20},
	})
	m := withUUID("bad")
	m.Annotations = amqp10.Map(amqp10.Symbol("x-opt-null"), amqp10.Null)
	amqp10.Dial(t, e.Broker).To(t, "/exchanges/"+e.names.Exchange()).Send(t, m.Encode())
	e.publish(t, "work", int32(100), amqp.Publishing{MessageId: "good"})
	r := e.work(t)
	if d := e.await(t, "work"); d.MessageId != "good" {
		t.Errorf("%+v", d)
	}
	brokertest.Eventually(t, func() error { return e.countIs(t, e.names.UnroutedQueue(), 1) })
	if n := r.Log.Count("a message was left to the broker"); n != 1 {
		t.Errorf("said %d times:\n%s", n, r.Log)
	}
}

// A worker with the permissions that the provider lists can do all that it has to.
func TestListedPermissionsOfADelayedExchangeSuffice(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	permissions := delayed.WorkerPermissions(e.names)
	user, password := e.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	r := e.workOn(t, withUser(t, e.URI, user, password), exchangesOf(t, e.spec.Worker()), func(context.Context, *worker.Options) {})
	for _, ms := range []int{0, 100, 700} {
		e.publish(t, "work", ms, amqp.Publishing{})
		e.await(t, "work")
	}
	e.publish(t, "work", 61_000, amqp.Publishing{})
	e.await(t, e.names.UnroutedQueue())
	if log := r.Log; strings.Contains(log.String(), "ACCESS_REFUSED") || log.Count("msg=consuming") != 1 {
		t.Errorf("a permission was missing:\n%s", log)
	}
}

// A publisher with the permissions that the provider lists can write to no level.
func TestPublisherPermissionsOfADelayedExchange(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	permissions := delayed.PublisherPermissions(e.names)
	user, password := e.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	for exchange, allowed := range map[string]bool{
		e.names.Exchange(): true, e.names.DeliverExchange(): false, e.names.UnroutedExchange(): false,
		e.names.Level(delayed.Level{Unit: 100 * time.Millisecond}): false, "": false,
	} {
		conn, err := amqp.DialConfig(withUser(t, e.URI, user, password), amqp.Config{Vhost: e.Vhost})
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		ch, err := conn.Channel()
		require.NoError(t, err)
		require.NoError(t, ch.Confirm(false))
		confirm, err := ch.PublishWithDeferredConfirm(exchange, "work", false, false, amqp.Publishing{})
		require.NoError(t, err)
		if ack, err := confirm.WaitContext(t.Context()); err != nil || ack != allowed {
			t.Errorf("publish to %q: %t, %v", exchange, ack, err)
		}
	}
}
