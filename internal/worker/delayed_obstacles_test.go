package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// level returns the name of a level of 100 ms.
func (e *testExchange) level(bit int) string {
	return e.names.Level(delayed.Level{Unit: 100 * time.Millisecond, Bit: bit})
}

// A message that cannot be delayed yet is kept, and no other message is. Once it can be delayed, it goes on by itself.
func TestMessagesWaitForWhatIsMissing(t *testing.T) {
	t.Parallel()
	const kept = "publish deferred, messages? kept unacknowledged"
	for name, c := range map[string]struct {
		remove func(*testing.T, *testExchange)
		log    string
		// delay is the delay of the affected messages.
		delay int
		// unrouted messages go to the unrouted queue, others to the work queue.
		unrouted bool
	}{
		"binding of a level": {func(t *testing.T, e *testExchange) {
			t.Helper()
			e.Unbind(t, e.level(2), "q", e.level(2))
		}, "the exchange has no queue", 450, false},
		"queue of a level": {func(t *testing.T, e *testExchange) {
			t.Helper()
			e.set(t, http.MethodDelete, e.Path("queues", e.level(2)), nil)
		}, "the exchange has no queue", 450, false},
		"exchange of a level": {func(t *testing.T, e *testExchange) {
			t.Helper()
			e.set(t, http.MethodDelete, e.Path("exchanges", e.level(2)), nil)
		}, "the exchange is missing", 450, false},
		"level that is full": {func(t *testing.T, e *testExchange) {
			t.Helper()
			e.set(t, http.MethodPut, e.Path("policies", "full"), map[string]any{
				"pattern": "^events.delay.100ms.2$", "apply-to": "queues", "priority": 2000, "definition": map[string]any{"max-length": 0, "overflow": "reject-publish"},
			})
			e.awaitFull(t, e.level(2))
		}, "the broker refuses them", 450, false},
		"unrouted queue": {func(t *testing.T, e *testExchange) {
			t.Helper()
			e.Unbind(t, e.names.UnroutedExchange(), "q", e.names.UnroutedQueue())
		}, "the exchange has no queue", 100_000_000, true},
		"deliver exchange": {func(t *testing.T, e *testExchange) {
			t.Helper()
			// This also deletes the binding of the work queue.
			e.set(t, http.MethodDelete, e.Path("exchanges", e.names.DeliverExchange()), nil)
		}, "the exchange is missing", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExchange(t, "1h", "100ms", "work")
			r := e.workWith(t, func(_ context.Context, o *worker.Options) { o.Prefetch = 50 })
			r.awaitReady(t, "")
			c.remove(t, e)
			const n = 20
			for i := range n {
				e.publish(t, "work", c.delay, amqp.Publishing{MessageId: fmt.Sprint("held-", i)})
			}
			r.Log.Await(t, c.log, 1)
			r.awaitReady(t, "kept unacknowledged")
			r.awaitSeries(t, map[string]float64{"messages_in_backlog": n, "ready": 0})
			e.expectEmpty(t, "work")
			if c.delay != 0 {
				e.publish(t, "work", 150, amqp.Publishing{MessageId: "other"})
				require.Equal(t, "other", e.await(t, "work").MessageId)
			}
			e.set(t, http.MethodPut, e.Path("policies", "full"), map[string]any{"pattern": "^none$", "definition": map[string]any{"max-length": 0}})
			e.Create(t, e.spec.Expand())
			queue := "work"
			if c.unrouted {
				queue = e.names.UnroutedQueue()
			}
			brokertest.Eventually(t, func() error { return e.countIs(t, queue, n) })
			r.awaitReady(t, "")
			if restarts := r.Log.Count("msg=consuming"); restarts != 1 {
				t.Errorf("%d sessions, want 1:\n%s", restarts, r.Log)
			}
			if lines := r.Log.Count("publish deferred"); lines > 2 {
				t.Errorf("%d lines %q:\n%s", lines, kept, r.Log)
			}
		})
	}
}

// awaitFull waits until a queue refuses messages.
func (p testVhost) awaitFull(t *testing.T, queue string) {
	t.Helper()
	ch := p.Channel(t)
	require.NoError(t, ch.Confirm(false))
	brokertest.Eventually(t, func() error {
		c, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{Expiration: "1"})
		require.NoError(t, err)
		if c.Wait() {
			return fmt.Errorf("%s takes messages", queue)
		}
		return nil
	})
}

// A binding to the level below can be missing, too. Messages above it wait, and are late rather than early.
func TestMissingWayDownMakesNothingEarly(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1h", "100ms", "work")
	e.work(t)
	// A wait of 400 ms passes levels 1 and 0 without stopping.
	e.Unbind(t, e.level(1), "e", e.level(0))
	e.publish(t, "work", 400, amqp.Publishing{MessageId: "held"})
	e.publish(t, "work", 200, amqp.Publishing{MessageId: "other"})
	require.Equal(t, "other", e.await(t, "work").MessageId)
	time.Sleep(time.Second)
	e.expectEmpty(t, "work")
	brokertest.Eventually(t, func() error { return e.countIs(t, e.level(2), 1) })
}

// Messages that found no exchange go on as soon as the policy of the levels changes. Without that, they would go on
// minutes later.
func TestPolicyChangeResumesLevels(t *testing.T) {
	t.Parallel()
	const more = 40 // than the broker offers at a time
	e := newExchange(t, "1m", "100ms", "work")
	e.work(t)
	e.set(t, http.MethodDelete, e.Path("exchanges", e.names.DeliverExchange()), nil)
	sent := map[string]due{}
	for i := range more {
		id := strconv.Itoa(i)
		sent[id] = due{time.Now().Add(300 * time.Millisecond), "work"}
		e.publish(t, "work", 300, amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent})
	}
	brokertest.Eventually(t, func() error { return e.countIs(t, e.level(0), more) })
	e.Create(t, e.spec.Expand())
	e.Bind(t, topology.Binding{Source: e.names.DeliverExchange(), Destination: "work", RoutingKey: "work"})
	deliveries := e.collect(t, "work")
	changed := e.spec
	changed.PolicyPriority++
	e.Create(t, changed.Expand())
	if n := awaitDue(t, sent, deliveries); n > 0 {
		t.Errorf("%d messages came twice", n)
	}
	brokertest.Eventually(t, func() error { return e.countIs(t, e.level(0), 0) })
	if n := len(deliveries); n > 0 {
		t.Errorf("%d messages came twice afterwards", n)
	}
	e.expectEmpty(t, e.names.UnroutedQueue())
}

// A missing level matters only while the configuration has it.
func TestReloadFreesMessages(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	configs := make(chan workerconfig.Config)
	wide := e.spec.Worker()
	wide.MaxDelay = "1h"
	r := e.workOn(t, e.URI, exchangesOf(t, wide), func(_ context.Context, o *worker.Options) { o.Configs = configs })
	for range 10 {
		e.publish(t, "work", 110_000, amqp.Publishing{})
	}
	r.Log.Await(t, "the exchange is missing", 1)
	narrow, err := workerconfig.Parse(exchangesOf(t, e.spec.Worker()))
	require.NoError(t, err)
	configs <- narrow
	brokertest.Eventually(t, func() error { return e.countIs(t, e.names.UnroutedQueue(), 10) })
	r.awaitReady(t, "")

	// Another unit, with levels of its own.
	finer := e.spec
	finer.Precision = waiting(t, "30ms")
	e.Create(t, finer.Expand())
	other, err := workerconfig.Parse(exchangesOf(t, finer.Worker()))
	require.NoError(t, err)
	configs <- other
	r.Log.Await(t, "configuration changed", 2)
	began := time.Now()
	e.publish(t, "work", 50, amqp.Publishing{})
	d := e.await(t, "work")
	if took := time.Since(began); took < 60*time.Millisecond || d.Headers["x-first-death-queue"] != "events.delay.30ms.1" {
		t.Errorf("after %s: %v", took, d.Headers)
	}
	require.Equal(t, 1, r.Log.Count("msg=consuming"))
}

// The inbox can be deleted and created again.
func TestInboxOfADelayedExchangeIsDeleted(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	r := e.work(t)
	r.awaitReady(t, "")
	e.set(t, http.MethodDelete, e.Path("queues", e.names.Inbox()), nil)
	r.awaitReady(t, "inbox")
	e.Create(t, e.spec.Expand())
	r.awaitReady(t, "")
	e.publish(t, "work", 100, amqp.Publishing{})
	e.await(t, "work")
}

// A full queue behind the exchange holds up no other messages. Once it has room, new messages do not wait for refused
// ones.
func TestFullTargetHoldsUpItsOwnMessages(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	e.declareFull(t, "full", topology.Binding{Source: e.names.DeliverExchange(), RoutingKey: "full"})
	r := e.work(t)
	e.publish(t, "full", 0, amqp.Publishing{MessageId: "held"})
	brokertest.Eventually(t, func() error { return e.countIs(t, e.names.Refused(), 1) })
	for _, ms := range []int{0, 100} {
		e.publish(t, "work", ms, amqp.Publishing{})
		e.await(t, "work")
	}
	e.limit(t, "full", 1_000_000)
	e.publish(t, "full", 0, amqp.Publishing{MessageId: "new"})
	for e.await(t, "full").MessageId != "new" {
	}
	r.awaitReady(t, "")
}

// An alarm neither loses nor duplicates a message.
func TestDelayedExchangeDuringAnAlarm(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	x := &proxy{}
	r := e.workOn(t, e.throughProxy(t, x), exchangesOf(t, e.spec.Worker()), func(context.Context, *worker.Options) {})
	deliveries := e.collect(t, "work")
	r.awaitReady(t, "")
	x.block()
	r.Log.Await(t, "the broker accepts no messages", 1)
	sent := e.publishMany(t, "", 100, time.Second, "work")
	r.awaitReady(t, "alarm")
	x.unblock()
	if n := awaitDue(t, sent, deliveries); n > 0 {
		t.Errorf("%d messages came twice", n)
	}
	r.awaitReady(t, "")
}
