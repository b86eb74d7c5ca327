//go:build load

package worker_test

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// refusal is a flow with two queues behind the same exchange, one of which is full.
type refusal struct {
	testVhost
	good, full, refused string
	binding             topology.Binding
	start               func() *sidecartest.Process
	message             func(id string) (exchange, key string, m amqp.Publishing)
}

func refusals() map[string]func(*testing.T) refusal {
	return map[string]func(*testing.T) refusal{
		"delivered at once": func(t *testing.T) refusal {
			t.Helper()
			e := newExchange(t, "1m", "100ms", "good")
			return refusal{
				e.testVhost, "good", "full", e.names.Refused(),
				topology.Binding{Source: e.names.DeliverExchange(), RoutingKey: "good"},
				func() *sidecartest.Process { return e.start(t) },
				func(id string) (string, string, amqp.Publishing) {
					return e.names.Exchange(), "good", amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent}
				},
			}
		},
		"parked": func(t *testing.T) refusal {
			t.Helper()
			p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
			return refusal{
				p.testVhost, p.names.FailedQueue(), "full", p.names.RefusedQueue(),
				topology.Binding{Source: p.names.FailedExchange()},
				func() *sidecartest.Process { return p.start(t) },
				func(id string) (string, string, amqp.Publishing) {
					return p.names.DeadLetterExchange(), "key", amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Headers: lastAttempt()}
				},
			}
		},
	}
}

// A queue refuses messages for ten minutes, while sidecars are killed. The other one gets all of them as fast as before, and each no
// more than twice, but for those that were in flight at a kill.
func TestLongRefusal(t *testing.T) {
	t.Parallel()
	for name, flow := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow(t).run(t)
		})
	}
}

// Minutes after it has room, a queue has each refused message once, whether another queue gets them, too, or not.
func TestLongRefusalEnds(t *testing.T) {
	t.Parallel()
	const n = 200
	for name, flow := range refusals() {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, alone %t", name, alone), func(t *testing.T) {
				t.Parallel()
				r := flow(t)
				r.declareFull(t, r.full, r.binding)
				var good *consumer
				if alone {
					r.set(t, http.MethodDelete, r.Path("queues", r.good), nil)
				} else {
					good = r.consume(t, r.good, acknowledge)
				}
				r.start()
				for i := range n {
					exchange, key, m := r.message(fmt.Sprint(i))
					r.Publish(t, exchange, key, m)
				}
				brokertest.Eventually(t, func() error { return r.countIs(t, r.refused, n) })
				time.Sleep(2 * pipeline.RefusedWait)
				late := r.awaitRefused(t, n)
				if all, _, _ := late.count(); all != n {
					t.Errorf("%d messages of %d", all, n)
				}
				if alone {
					return
				}
				if _, different, most := good.count(); different != n || most > 2 {
					t.Errorf("%s has %d of %d messages, %d times at most", r.good, different, n, most)
				}
			})
		}
	}
}

// awaitRefused makes room in the full queue, and waits until it has so many messages.
func (r refusal) awaitRefused(t *testing.T, n int) *consumer {
	t.Helper()
	r.limit(t, r.full, 1_000_000)
	late := r.consume(t, r.full, acknowledge)
	brokertest.Eventually(t, func() error {
		if err := late.hasAll(n); err != nil {
			return err
		}
		return r.countIs(t, r.refused, 0)
	})
	return late
}

func (r refusal) run(t *testing.T) {
	t.Helper()
	const many, rate, window = 1000, 100, 256
	long, kills := 10*time.Minute, 5
	if testing.Short() {
		long, kills = time.Minute, 1
	}
	good := r.consume(t, r.good, acknowledge)
	replicas := []*sidecartest.Process{r.start(), r.start()}
	sent := 0
	publish := func(n int, every time.Duration) {
		for range n {
			exchange, key, m := r.message(fmt.Sprint(sent))
			r.Publish(t, exchange, key, m)
			sent++
			time.Sleep(every)
		}
	}
	// pace is how many of the messages of a minute come within it.
	pace := func() float64 {
		_, before, _ := good.count()
		publish(many, time.Second/rate)
		time.Sleep(time.Second)
		_, now, _ := good.count()
		return float64(now-before) / many
	}
	alone := pace()
	r.declareFull(t, r.full, r.binding)
	publish(many, 0)
	brokertest.Eventually(t, func() error { return r.countIs(t, r.refused, many) })
	beside := pace()
	if beside < 0.9*alone {
		t.Errorf("%.2f of the messages come in time, %.2f before", beside, alone)
	}
	for range kills {
		for began := time.Now(); time.Since(began) < long/time.Duration(kills); {
			publish(rate, 5*time.Second/rate)
		}
		replicas[0].End(t, syscall.SIGKILL)
		replicas = append(replicas[1:], r.start())
	}
	brokertest.Eventually(t, func() error { return good.hasAll(sent) })
	r.awaitRefused(t, sent-many) // the first ones came before the queue
	_, twice, more := good.copies()
	t.Logf("RabbitMQ %s: %d messages, in time %.2f before and %.2f then; in the good queue %d came twice and %d more often",
		r.Version, sent, alone, beside, twice, more)
	if more > 2*kills*window {
		t.Errorf("%d messages came more than twice", more)
	}
}

func (c *consumer) hasAll(n int) error {
	if _, different, _ := c.count(); different < n {
		return fmt.Errorf("%d of %d messages", different, n)
	}
	return nil
}

// copies is how many messages came once, twice and more often.
func (c *consumer) copies() (once, twice, more int) {
	of := map[string]int{}
	for _, d := range c.deliveries() {
		of[d.MessageId]++
	}
	for _, n := range of {
		switch n {
		case 1:
			once++
		case 2:
			twice++
		default:
			more++
		}
	}
	return once, twice, more
}

// As long as there is no refused queue, messages are published to all queues again each time after twice as many attempts.
func TestLongRefusalWithoutRefusedQueue(t *testing.T) {
	t.Parallel()
	const mostCopies = 5 // in half a minute; 9 or more if each attempt went to all queues
	withoutRefusedQueue(t, func(good ...*consumer) {
		for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(time.Second) {
			for _, c := range good {
				if _, _, most := c.count(); most > mostCopies {
					t.Fatalf("%d copies after %s", most, time.Since(began))
				}
			}
		}
	})
}
