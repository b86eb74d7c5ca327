package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

func acknowledge(d amqp.Delivery) error { return d.Ack(false) }

// count returns the number of messages, the number of different ones, and the highest number of copies of one.
func (c *consumer) count() (all, different, most int) {
	ids := map[string]int{}
	for _, d := range c.deliveries() {
		if d.MessageId == "filling" {
			continue
		}
		all++
		ids[d.MessageId]++
		most = max(most, ids[d.MessageId])
	}
	return all, len(ids), most
}

// declareFull declares a queue that refuses messages.
func (p testVhost) declareFull(t *testing.T, queue string, from topology.Binding) {
	t.Helper()
	p.limit(t, queue, 1)
	p.DeclareQueue(t, queue, "quorum", nil)
	from.Destination = queue
	p.Bind(t, from)
	p.fillQueue(t, queue)
}

// limit makes a queue refuse messages above this length.
func (p testVhost) limit(t *testing.T, queue string, length int) {
	t.Helper()
	p.set(t, http.MethodPut, p.Path("policies", queue), map[string]any{
		"pattern": "^" + queue + "$", "apply-to": "queues", "priority": 2000,
		"definition": map[string]any{"max-length": length, "overflow": "reject-publish"},
	})
}

// refusal is a flow that publishes to a queue. Once a second queue is bound to the same exchange, it publishes to that,
// too.
type refusal struct {
	testVhost
	objects topology.Topology
	// good takes all messages. The messages that full refuses wait in refused.
	good, full, refused string
	// binding is the full queue's binding.
	binding topology.Binding
	// way is the kind of object that leads to the refused queue.
	way string
	// series counts the messages that have left the inbox.
	series  string
	work    func(*testing.T) *running
	start   func(*testing.T) *sidecartest.Process
	message func(id string) (exchange, key string, m amqp.Publishing)
}

func refusals() map[string]func(*testing.T) refusal {
	return map[string]func(*testing.T) refusal{
		"delivered at once": func(t *testing.T) refusal {
			t.Helper()
			e := newExchange(t, "1m", "100ms", "good")
			return refusal{
				testVhost: e.testVhost, objects: e.spec.Expand(), good: "good", full: "full", refused: e.names.Refused(),
				binding: topology.Binding{Source: e.names.DeliverExchange(), RoutingKey: "good"}, way: "exchanges",
				series: "messages_delivered_total", work: e.work, start: e.start,
				message: func(id string) (string, string, amqp.Publishing) {
					return e.names.Exchange(), "good", amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent}
				},
			}
		},
		// The work queues can have failed queues of their own or not.
		"parked": func(t *testing.T) refusal {
			t.Helper()
			p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
			return refusal{
				testVhost: p.testVhost, objects: p.spec.Expand(), good: p.names.FailedQueue(), full: "full", refused: p.names.RefusedQueue(),
				binding: topology.Binding{Source: p.names.FailedExchange()}, way: "queues",
				series: "messages_parked_total{reason=exhausted}",
				work: func(t *testing.T) *running {
					t.Helper()
					return p.workPermitted(t, pipeline.WorkerPermissions(p.names)).running
				},
				start: func(t *testing.T) *sidecartest.Process { t.Helper(); return p.start(t) },
				message: func(id string) (string, string, amqp.Publishing) {
					return p.names.DeadLetterExchange(), "key", amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Headers: lastAttempt()}
				},
			}
		},
	}
}

// forEachRefusal runs a test with a full queue beside a good one.
func forEachRefusal(t *testing.T, test func(*testing.T, refusal)) {
	t.Helper()
	for name, flow := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := flow(t)
			r.declareFull(t, r.full, r.binding)
			test(t, r)
		})
	}
}

// publish publishes n messages.
func (r refusal) publish(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		exchange, key, m := r.message(fmt.Sprint(i))
		r.Publish(t, exchange, key, m)
	}
}

// A queue beside a full one gets no more than two copies of a message that is delivered at once, or of a failed one.
// The broker offers some of them to both queues again.
func TestFullQueueBesideAGoodOne(t *testing.T) {
	t.Parallel()
	const n = 200
	forEachRefusal(t, func(t *testing.T, r refusal) {
		w := r.work(t)
		r.publish(t, n)
		w.Log.Await(t, "messages go to the refused queue", 1)
		good := r.consume(t, r.good, acknowledge)
		brokertest.Eventually(t, func() error {
			all, different, _ := good.count()
			if different < n || all == n {
				return fmt.Errorf("%s has %d messages, %d of %d different ones", r.good, all, different, n)
			}
			return r.countIs(t, r.refused, n)
		})
		_, _, most := good.count()
		require.LessOrEqual(t, most, 2, "times that a message came")
		w.awaitReady(t, "")
		w.awaitSeries(t, map[string]float64{"messages_refused_total": n, r.series: n})
		require.Equal(t, 1, w.Log.Count("refused queue"))
		require.Equal(t, 1, w.Log.Count("msg=consuming"))
	})
}

// A full queue beside the unrouted queue neither holds up nor duplicates unrouted messages. Other messages go on.
func TestFullQueueBesideTheUnroutedQueue(t *testing.T) {
	t.Parallel()
	const n = 50
	e := newExchange(t, "1m", "100ms", "work")
	e.declareFull(t, "audit", topology.Binding{Source: e.names.UnroutedExchange()})
	r := e.workWith(t, func(_ context.Context, o *worker.Options) { o.Prefetch = n / 2 })
	late := n
	if e.VersionAtLeast("4.0") {
		amqp10.Dial(t, e.Broker).To(t, "/exchanges/"+e.names.Exchange()).Send(t, withUUID("malformed").Encode())
		late++
	}
	for i := range n {
		e.publish(t, "work", time.Hour.Milliseconds(), amqp.Publishing{MessageId: fmt.Sprint(i), DeliveryMode: amqp.Persistent})
	}
	e.publish(t, "work", 500, amqp.Publishing{MessageId: "other"})
	require.Equal(t, "other", e.await(t, "work").MessageId)
	unrouted := e.consume(t, e.names.UnroutedQueue(), acknowledge)
	brokertest.Eventually(t, func() error {
		if all, different, most := unrouted.count(); different < late || all < 2*late || most > 2 {
			return fmt.Errorf("%d messages, %d different ones, one of them %d times; want %d", all, different, most, late)
		}
		return nil
	})
	r.awaitReady(t, "")
	r.awaitSeries(t, map[string]float64{"messages_unrouted_total{reason=delay_too_long}": n})
	for _, d := range unrouted.deliveries() {
		if d.MessageId != "malformed" && (d.RoutingKey != "work" || d.Headers["dead-letter-reason"] != "delay_too_long") {
			t.Fatalf("%+v", d)
		}
	}
}

// While there is no refused queue, messages are published again.
func TestRefusedQueueIsMissing(t *testing.T) {
	t.Parallel()
	withoutRefusedQueue(t, func(t *testing.T, good *consumer) {
		t.Helper()
		brokertest.Eventually(t, func() error {
			if _, _, most := good.count(); most < 2 {
				return errors.New("no message came twice")
			}
			return nil
		})
	})
}

// withoutRefusedQueue makes queues refuse messages beside other queues, and calls meanwhile before there is a refused
// queue.
func withoutRefusedQueue(t *testing.T, meanwhile func(t *testing.T, good *consumer)) {
	t.Helper()
	const n = 5
	forEachRefusal(t, func(t *testing.T, r refusal) {
		r.set(t, http.MethodDelete, r.Path(r.way, r.refused), nil)
		w := r.work(t)
		r.publish(t, n)
		good := r.consume(t, r.good, acknowledge)
		w.awaitReady(t, "kept unacknowledged")
		meanwhile(t, good)
		_, different, _ := good.count()
		require.Equal(t, n, different)
		r.Create(t, r.objects)
		w.awaitReady(t, "")
		require.Equal(t, 1, w.Log.Count("msg=consuming"))
		require.Equal(t, 1, w.Log.Count("publish deferred"))
	})
}

// A message that the refused queue itself refuses waits for it, and is not published to the other queues again.
func TestRefusedQueueRefuses(t *testing.T) {
	t.Parallel()
	const n = 20
	forEachRefusal(t, func(t *testing.T, r refusal) {
		r.limit(t, r.refused, 1)
		w, good := r.work(t), r.consume(t, r.good, acknowledge)
		r.publish(t, n)
		w.Log.Await(t, "the broker refuses them", 1)
		w.awaitReady(t, "kept unacknowledged")
		time.Sleep(2 * pipeline.RefusedWait)
		all, different, _ := good.count()
		require.Equal(t, n, different)
		require.LessOrEqual(t, all, n+n/2)
		r.limit(t, r.refused, 1_000_000)
		brokertest.Eventually(t, func() error { return r.countIs(t, r.refused, n) })
		w.awaitReady(t, "")
		_, _, most := good.count()
		require.LessOrEqual(t, most, 2, "times that a message came")
		require.Equal(t, 1, w.Log.Count("msg=consuming"))
		require.Equal(t, 1, w.Log.Count("the broker refuses them"))
	})
}
