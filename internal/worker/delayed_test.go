package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
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
	require.Zero(t, r.Log.Count("level=WARN")+r.Log.Count("level=ERROR"))
	e.expectEmpty(t, e.names.UnroutedQueue())
}

// The worker reads the types that clients of many languages write. A message with an unreadable delay is delivered at
// once.
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

// No header of a publisher gets a message delivered early, stops or loses it, or affects other messages.
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
		expectHeaders(t, d.Delivery, amqp.Table{
			"mine": "kept", "x-mine": int32(5), "x-delay": int32(-1500), "delay-30": nil, "delay-user-id": m.UserId,
			"delay-expiration": "60000", "delay-priority": int64(9), "delay-delivery-mode": int64(1),
		})
		if list, _ := d.Headers["x-death"].([]any); len(list) != 4 {
			t.Errorf("x-death has %d entries, want one for each level that it waited in: %v", len(list), list)
		}
	}
	if !queues["work"] || !queues["copy"] {
		t.Errorf("it came to %v", queues)
	}
	// The level is not frozen.
	e.publish(t, "work", int32(800), amqp.Publishing{MessageId: "after"})
	require.Equal(t, "after", brokertest.Receive(t, deliveries).MessageId)
}

// Undelivered messages are in the unrouted queue. If the worker knows the reason, they say it.
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
	// The broker moves these messages untouched.
	e.publish(t, "work", int32(500), amqp.Publishing{MessageId: "large", Headers: amqp.Table{"large": strings.Repeat("x", 130_400)}})
	expect("large", nil)
	e.publish(t, "work", int32(500), amqp.Publishing{MessageId: "undecodable", Headers: nested()})
	// The broker's count can still be of the message before.
	brokertest.Eventually(t, func() error {
		got := e.take(t, e.names.UnroutedQueue(), "ack_requeue_false")
		if len(got) != 1 || got[0].Properties.ID != "undecodable" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	e.publish(t, "work", int32(500), amqp.Publishing{MessageId: "good"})
	require.Equal(t, "good", e.await(t, "work").MessageId)
	r.awaitSeries(t, map[string]float64{
		"messages_unrouted_total{reason=delay_too_long}": 2, "messages_unrouted_total{reason=malformed}": 2, "messages_delayed_total": 2, "messages_delivered_total": 1,
		"session_restarts_total": 0, "ready": 1,
	})
}

// If an application's exchange is bound to the deliver exchange and has no queue for a key, RabbitMQ does not use the
// alternate exchange. Messages without a delay do not pile up in the sidecar.
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
	require.Equal(t, "other", e.await(t, "work").MessageId)
	brokertest.Eventually(t, func() error { return e.countIs(t, e.names.UnroutedQueue(), n) })
	if d, _ := e.Get(t, e.names.UnroutedQueue()); d.Headers["dead-letter-reason"] != "unroutable" || d.RoutingKey != "shop.refund" {
		t.Errorf("%+v", d)
	}
	r.awaitReady(t, "")
}

// A message that only AMQP 1.0 can carry does not stop the others.
func TestDelayedExchangeTakesUndeliverableMessages(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	e.Needs(t, brokertest.Release(">= 4.0"))
	r := e.work(t)
	sender := amqp10.Dial(t, e.Broker).To(t, "/exchanges/"+e.names.Exchange())
	for _, more := range [][]amqp10.Value{nil, {amqp10.Text("CC"), amqp10.Text("a"), amqp10.Text("BCC"), amqp10.UUID()}} {
		m := withUUID("bad")
		m.ApplicationProperties = amqp10.Map(append(more, amqp10.Text("order"), amqp10.UUID())...)
		sender.Send(t, m.Encode())
		e.publish(t, "work", int32(100), amqp.Publishing{MessageId: "good"})
		require.Equal(t, "good", e.await(t, "work").MessageId)
		d := e.await(t, e.names.UnroutedQueue())
		if text, _ := d.Headers["dead-letter-error"].(string); d.MessageId != "bad" || d.Headers["dead-letter-reason"] != "malformed" || !strings.Contains(text, "a UUID") {
			t.Errorf("%+v", d)
		}
	}
	r.awaitSeries(t, map[string]float64{"messages_unrouted_total{reason=malformed}": 2, "messages_delayed_total": 2})
}

// A message that the broker can deliver over no protocol is gone at its delivery limit, which is reached at once. Here,
// the limit is lower than usual.
func TestMessageOfNoProtocolDoesNotStopADelayedExchange(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	e.Needs(t, brokertest.Release(">= 4.0"))
	e.set(t, "PUT", e.Path("policies", "limit"), map[string]any{
		"pattern": "inbox$", "apply-to": "queues", "priority": 100_000, "definition": map[string]any{"delivery-limit": 20},
	})
	m := withUUID("bad")
	m.Annotations = amqp10.Map(amqp10.Symbol("x-opt-null"), amqp10.Null)
	amqp10.Dial(t, e.Broker).To(t, "/exchanges/"+e.names.Exchange()).Send(t, m.Encode())
	e.publish(t, "work", int32(100), amqp.Publishing{MessageId: "good"})
	r := e.work(t)
	require.Equal(t, "good", e.await(t, "work").MessageId)
	brokertest.Eventually(t, func() error { return e.countIs(t, e.names.UnroutedQueue(), 1) })
	require.Equal(t, 1, r.Log.Count("a message was left to the broker"))
}

// A worker needs no more permissions than the provider lists.
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

// With the permissions that the provider lists, a publisher cannot write to a level.
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

// start runs the command with the delayed exchange's configuration, and waits until it consumes.
func (e *testExchange) start(t *testing.T) *sidecartest.Process {
	t.Helper()
	return sidecartest.Start(t, []string{"RABBITMQ_URI=" + e.URI, "RABBITMQ_RETRY_CONFIG_JSON=" + string(exchangesOf(t, e.spec.Worker()))})
}

// A sidecar that is stopped again and again loses nothing, duplicates nothing and delivers nothing early. A killed
// sidecar loses nothing and delivers nothing early.
func TestStopsAndKillsOfADelayedExchange(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"stops": syscall.SIGTERM, "kills": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const batches, batch = 6, 500
			queues := []string{"eu.mail", "us.mail"}
			e := newExchange(t, "1h", "100ms", queues...)
			deliveries := e.collect(t, queues...)
			sent := map[string]due{}
			for i := range batches {
				p := e.start(t)
				maps.Copy(sent, e.publishMany(t, fmt.Sprint(i, "-"), batch, 5*time.Second, queues...))
				time.Sleep(rand.N(200 * time.Millisecond))
				if code := p.End(t, signal); signal == syscall.SIGTERM && code != 0 {
					t.Errorf("exit code %d:\n%s", code, p.Log)
				}
			}
			e.work(t)
			duplicates := awaitDue(t, sent, deliveries)
			t.Logf("RabbitMQ %s: %d of %d messages are doubled", e.Version, duplicates, len(sent))
			if signal == syscall.SIGTERM && duplicates > 0 {
				t.Error("want none")
			}
		})
	}
}

// A pipeline and delayed exchanges can share a vhost and a process, even if their names are similar.
func TestPipelineAndDelayedExchangesInOneProcess(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "events", []string{"100ms"}, 3, "work")
	first := newExchangeIn(t, p.testVhost, "events", "1m", "100ms", "first")
	second := newExchangeIn(t, p.testVhost, "events.more", "1m", "70ms", "second")
	// Due messages go to the pipeline's work queue as well.
	require.NoError(t, p.Channel(t).QueueBind("work", "work", first.names.DeliverExchange(), false, nil))
	configured, err := json.Marshal(map[string]any{
		"pipelines": []pipeline.Worker{p.spec.Worker()}, "delayed_exchanges": []delayed.Worker{first.spec.Worker(), second.spec.Worker()},
	})
	require.NoError(t, err)
	r := p.workOn(t, p.URI, configured, func(context.Context, *worker.Options) {})
	r.Log.Await(t, "msg=consuming", 3)
	brokertest.Eventually(t, func() error {
		statuses := r.seen.Statuses()
		for _, s := range statuses {
			if !s.Ready {
				return fmt.Errorf("%+v", statuses)
			}
		}
		if len(statuses) != 3 || statuses[0].Kind != rules.Pipeline || statuses[1].Kind != rules.DelayedExchange || statuses[2].Name != "events.more" {
			return fmt.Errorf("%+v", statuses)
		}
		return nil
	})
	c := p.consume(t, "work", nil)
	first.publish(t, "work", 300, amqp.Publishing{MessageId: "a"})
	first.publish(t, "first", 300, amqp.Publishing{MessageId: "b"})
	second.publish(t, "second", 300, amqp.Publishing{MessageId: "c"})
	require.Equal(t, "b", p.await(t, "first").MessageId)
	require.Equal(t, "c", p.await(t, "second").MessageId)
	if d := p.awaitFailed(t, "exhausted"); d.MessageId != "a" || d.Headers["x-delay"] != int32(-300) {
		t.Errorf("%+v", d)
	}
	require.Len(t, c.deliveries(), 3)
}

// A reload starts new flows, and lets removed flows finish. It touches no others.
func TestReloadAddsAndRemovesDelayedExchanges(t *testing.T) {
	t.Parallel()
	a := newExchange(t, "1m", "100ms", "a")
	b := newExchangeIn(t, a.testVhost, "other", "1m", "100ms", "b")
	parse := func(workers ...delayed.Worker) workerconfig.Config {
		config, err := workerconfig.Parse(exchangesOf(t, workers...))
		require.NoError(t, err)
		return config
	}
	configs := make(chan workerconfig.Config)
	r := a.workWith(t, func(_ context.Context, o *worker.Options) { o.Configs = configs })
	deliveries := a.collect(t, "a", "b")
	r.awaitReady(t, "")
	configs <- parse(a.spec.Worker(), b.spec.Worker())
	r.Log.Await(t, "msg=consuming", 2)
	sent := a.publishMany(t, "a-", 300, 2*time.Second, "a")
	maps.Copy(sent, b.publishMany(t, "b-", 300, 2*time.Second, "b"))
	configs <- parse(b.spec.Worker())
	r.Log.Await(t, "msg=stopped", 1)
	maps.Copy(sent, a.publishMany(t, "later-", 100, time.Second, "a"))
	configs <- parse(a.spec.Worker(), b.spec.Worker())
	if n := awaitDue(t, sent, deliveries); n > 0 {
		t.Errorf("%d messages came twice", n)
	}
	require.Equal(t, 3, r.Log.Count("msg=consuming"))
}

// A check says which parts of each delayed exchange are missing.
func TestCheckOfADelayedExchange(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "1s")
	permissions := delayed.WorkerPermissions(e.names)
	user, password := e.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	check := func() (string, error) {
		var out strings.Builder
		config, err := workerconfig.Parse(exchangesOf(t, e.spec.Worker()))
		require.NoError(t, err)
		err = worker.Check(t.Context(), worker.Options{Config: config, Brokers: brokersAt(t, withUser(t, e.URI, user, password))}, &out)
		return out.String(), err
	}
	if out, err := check(); err != nil || !strings.Contains(out, `delayed exchange "events" in vhost "`+e.Vhost+`": ok: events.delay.inbox has 0 messages`) {
		t.Errorf("%s, %v", out, err)
	}
	for _, exchange := range []string{"events.delay.1s.5", "events.delay.unrouted", "events.deliver"} {
		e.set(t, http.MethodDelete, e.Path("exchanges", exchange), nil)
		if out, err := check(); err == nil || !strings.Contains(out, "error: look for the queue ") || !strings.Contains(out, "no exchange '"+exchange+"'") {
			t.Errorf("without %s: %s, %v", exchange, out, err)
		}
	}
	e.set(t, http.MethodDelete, e.Path("queues", e.names.Inbox()), nil)
	if out, err := check(); err == nil || !strings.Contains(out, "error: look for the queue ") {
		t.Errorf("%s, %v", out, err)
	}
}
