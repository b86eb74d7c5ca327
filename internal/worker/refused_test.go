package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

func acknowledge(d amqp.Delivery) error { return d.Ack(false) }

// count is how many messages came in all, how many different ones, and how often the one that came most often.
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
	p.bind(t, from)
	p.fillQueue(t, queue)
}

// limit has a queue refuse more messages than that.
func (p testVhost) limit(t *testing.T, queue string, length int) {
	t.Helper()
	p.set(t, http.MethodPut, p.Path("policies", queue), map[string]any{
		"pattern": "^" + queue + "$", "apply-to": "queues", "priority": 2000,
		"definition": map[string]any{"max-length": length, "overflow": "reject-publish"},
	})
}

// expectShared waits until one queue has all messages that another one refuses, and the broker has offered some of them to both
// again. None comes more than twice.
func (p testVhost) expectShared(t *testing.T, n int, good, refused string) {
	t.Helper()
	kept := p.consume(t, good, acknowledge)
	brokertest.Eventually(t, func() error {
		all, different, _ := kept.count()
		if different < n || all == n {
			return fmt.Errorf("%s has %d messages, %d of %d different ones", good, all, different, n)
		}
		return p.countIs(t, refused, n)
	})
	if _, _, most := kept.count(); most > 2 {
		t.Errorf("%s has a message %d times", good, most)
	}
}

// A queue beside one that is full gets no more than two copies of what is delivered at once.
func TestFullQueueBesideAGoodOne(t *testing.T) {
	t.Parallel()
	const n = 200
	e := newExchange(t, "1m", "100ms", "good")
	e.declareFull(t, "full", topology.Binding{Source: e.names.DeliverExchange(), RoutingKey: "good"})
	r := e.work(t)
	for i := range n {
		e.publish(t, "good", 0, amqp.Publishing{MessageId: fmt.Sprint(i), DeliveryMode: amqp.Persistent})
	}
	r.Log.Await(t, "messages go to the refused queue", 1)
	e.expectShared(t, n, "good", e.names.Refused())
	r.awaitReady(t, "")
	r.awaitSeries(t, map[string]float64{"messages_refused_total": n, "messages_delivered_total": n})
	if log := r.Log; log.Count("refused queue") != 1 || log.Count("msg=consuming") != 1 {
		t.Errorf("log:\n%.2000s", log)
	}
}

// A copy for an audit does not hold up or multiply failed messages, whether their work queues have failed queues of their own or not.
func TestFullQueueBesideTheFailedQueue(t *testing.T) {
	t.Parallel()
	const n = 200
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.declareFull(t, "audit", topology.Binding{Source: p.names.FailedExchange()})
	r := p.workPermitted(t, pipeline.WorkerPermissions(p.names))
	p.fillInbox(t, n, func(int) amqp.Publishing {
		return amqp.Publishing{Headers: lastAttempt()}
	})
	r.Log.Await(t, "messages go to the refused queue", 1)
	p.expectShared(t, n, p.names.FailedQueue(), p.names.RefusedQueue())
	r.awaitReady(t, "")
	r.awaitSeries(t, map[string]float64{"messages_refused_total": n, "messages_parked_total{reason=exhausted}": n})
	if log := r.Log; log.Count("messages go to the refused queue") != 1 || log.Count("msg=consuming") != 1 {
		t.Errorf("log:\n%.2000s", log)
	}
}

// A queue of others beside the unrouted queue does not hold up or multiply what goes there, and the others go on.
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
	if d := e.await(t, "work"); d.MessageId != "other" {
		t.Errorf("%+v", d)
	}
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

// As long as there is no refused queue, messages are published again.
func TestRefusedQueueIsMissing(t *testing.T) {
	t.Parallel()
	withoutRefusedQueue(t, func(good ...*consumer) {
		brokertest.Eventually(t, func() error {
			for _, c := range good {
				if _, _, most := c.count(); most < 2 {
					return errors.New("no message came twice")
				}
			}
			return nil
		})
	})
}

// withoutRefusedQueue has queues refuse messages beside others, and does something before there is a refused queue.
func withoutRefusedQueue(t *testing.T, meanwhile func(good ...*consumer)) {
	t.Helper()
	const n = 5
	e := newExchange(t, "1m", "100ms", "good")
	e.set(t, http.MethodDelete, e.Path("exchanges", e.names.Refused()), nil)
	e.declareFull(t, "full", topology.Binding{Source: e.names.DeliverExchange(), RoutingKey: "good"})
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.set(t, http.MethodDelete, p.Path("queues", p.names.RefusedQueue()), nil)
	p.declareFull(t, "audit", topology.Binding{Source: p.names.FailedExchange()})
	delays, parks := e.work(t), p.work(t)
	p.fillInbox(t, n, func(int) amqp.Publishing { return amqp.Publishing{Headers: lastAttempt()} })
	for i := range n {
		e.publish(t, "good", 0, amqp.Publishing{MessageId: fmt.Sprint(i), DeliveryMode: amqp.Persistent})
	}
	good, failed := e.consume(t, "good", acknowledge), p.consume(t, p.names.FailedQueue(), acknowledge)
	delays.awaitReady(t, "kept unacknowledged")
	parks.awaitReady(t, "kept unacknowledged")
	meanwhile(good, failed)
	for _, c := range []*consumer{good, failed} {
		if _, different, _ := c.count(); different != n {
			t.Errorf("%d of %d messages", different, n)
		}
	}
	e.apply(t, delayed.Expand(e.spec))
	p.apply(t, pipeline.Expand(p.spec))
	delays.awaitReady(t, "")
	parks.awaitReady(t, "")
	for _, r := range []*running{delays, parks} {
		if log := r.Log; log.Count("msg=consuming") != 1 || log.Count("publish deferred") != 1 {
			t.Errorf("log:\n%.2000s", log)
		}
	}
}

// What the refused queue itself does not take waits for it, and is not published to the others again.
func TestRefusedQueueRefuses(t *testing.T) {
	t.Parallel()
	const n = 20
	e := newExchange(t, "1m", "100ms", "good")
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	for _, c := range []struct {
		testVhost
		refused, good string
		binding       topology.Binding
		work          func(*testing.T) *running
		publish       func(*testing.T)
	}{
		{
			e.testVhost, e.names.Refused(), "good",
			topology.Binding{Source: e.names.DeliverExchange(), RoutingKey: "good"},
			func(t *testing.T) *running { t.Helper(); return e.work(t) },
			func(t *testing.T) {
				t.Helper()
				for i := range n {
					e.publish(t, "good", 0, amqp.Publishing{MessageId: fmt.Sprint(i), DeliveryMode: amqp.Persistent})
				}
			},
		},
		{
			p.testVhost, p.names.RefusedQueue(), p.names.FailedQueue(),
			topology.Binding{Source: p.names.FailedExchange()},
			func(t *testing.T) *running { t.Helper(); return p.work(t) },
			func(t *testing.T) {
				t.Helper()
				p.fillInbox(t, n, func(int) amqp.Publishing { return amqp.Publishing{Headers: lastAttempt()} })
			},
		},
	} {
		t.Run(c.refused, func(t *testing.T) {
			t.Parallel()
			c.limit(t, c.refused, 1)
			c.declareFull(t, "full", c.binding)
			r, good := c.work(t), c.consume(t, c.good, acknowledge)
			c.publish(t)
			r.Log.Await(t, "the broker refuses them", 1)
			r.awaitReady(t, "kept unacknowledged")
			time.Sleep(2 * pipeline.RefusedWait)
			if all, different, _ := good.count(); different != n || all > n+n/2 {
				t.Errorf("%s has %d messages, %d different ones", c.good, all, different)
			}
			c.limit(t, c.refused, 1_000_000)
			brokertest.Eventually(t, func() error { return c.countIs(t, c.refused, n) })
			r.awaitReady(t, "")
			if _, _, most := good.count(); most > 2 {
				t.Errorf("%s has a message %d times", c.good, most)
			}
			if log := r.Log; log.Count("msg=consuming") != 1 || log.Count("the broker refuses them") != 1 {
				t.Errorf("log:\n%.2000s", log)
			}
		})
	}
}
