//go:build load

package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// A queue refuses messages for ten minutes, while sidecars are killed. The other queue gets all of them as fast as
// before. It gets each no more than twice, apart from messages in flight at a kill.
func TestLongRefusal(t *testing.T) {
	t.Parallel()
	for name, flow := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow(t).run(t)
		})
	}
}

// Minutes after a queue has room again, it has each refused message once, whether another queue gets them, too, or not.
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
				r.start(t)
				r.publish(t, n)
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

// awaitRefused makes room in the full queue, and waits until it has this many messages.
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
	replicas := []*sidecartest.Process{r.start(t), r.start(t)}
	sent := 0
	publish := func(n int, every time.Duration) {
		for range n {
			exchange, key, m := r.message(fmt.Sprint(sent))
			r.Publish(t, exchange, key, m)
			sent++
			time.Sleep(every)
		}
	}
	// pace is the part of a minute's messages that arrives within the minute.
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
		replicas = append(replicas[1:], r.start(t))
	}
	brokertest.Eventually(t, func() error { return good.hasAll(sent) })
	r.awaitRefused(t, sent-many) // the first messages were published before the queue existed
	twice, more := good.copies()
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

// copies returns how many messages came twice, and how many came more often.
func (c *consumer) copies() (twice, more int) {
	for _, n := range copiesIn(c) {
		switch {
		case n == 2:
			twice++
		case n > 2:
			more++
		}
	}
	return twice, more
}

// Without a refused queue, messages go to all queues again, each time after twice as many attempts.
func TestLongRefusalWithoutRefusedQueue(t *testing.T) {
	t.Parallel()
	const mostCopies = 5 // in half a minute; 9 or more if each attempt went to all queues
	withoutRefusedQueue(t, func(t *testing.T, good *consumer) {
		t.Helper()
		for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(time.Second) {
			_, _, most := good.count()
			require.LessOrEqual(t, most, mostCopies, "after %s", time.Since(began))
		}
	})
}

// stops is how often a worker is stopped.
const stops = 20

// A worker that is stopped again and again, at any point, loses nothing and duplicates nothing.
func TestLoadStops(t *testing.T) {
	t.Parallel()
	interrupted(t, func(t *testing.T, p *testPipeline) {
		t.Helper()
		for range stops {
			w := p.start(t)
			time.Sleep(rand.N(time.Second))
			require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)
		}
	})
}

// The same holds if the pipeline leaves the configuration and comes back, before or after the worker has stopped.
func TestLoadRemovals(t *testing.T) {
	t.Parallel()
	interrupted(t, func(t *testing.T, p *testPipeline) {
		t.Helper()
		configs := make(chan workerconfig.Config)
		var with, without workerconfig.Config
		r := p.workWith(t, p.URI, p.spec.Worker(), func(_ context.Context, o *worker.Options) { with, o.Configs = o.Config, configs })
		for range stops {
			time.Sleep(rand.N(time.Second))
			configs <- without
			time.Sleep(rand.N(time.Second))
			configs <- with
		}
		r.stop(t)
		if strings.Contains(r.Log.String(), "level=ERROR") {
			t.Errorf("log:\n%s", r.Log)
		}
	})
}

// interrupted runs a pipeline under load, and expects each message to come once.
func interrupted(t *testing.T, work func(*testing.T, *testPipeline)) {
	t.Helper()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
		a := p.collect(t, "orders.created")
		published := p.keepFilling(t)
		work(t, p)
		n := published()
		p.work(t)
		a.awaitAtLeast(t, n)
		t.Logf("RabbitMQ %s: %d of %d messages are doubled after %d stops", p.Version, a.copies(), n, stops)
		if a.copies() > 0 {
			t.Error("want none")
		}
	})
}

// keepFilling publishes to the inbox, so that it is never empty, until the returned function is called. That function
// returns the number of messages.
func (p *testPipeline) keepFilling(t *testing.T) (stop func() int) {
	t.Helper()
	const ahead = 5000
	ctx, cancel := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	n := 0
	publishing.Go(func() {
		ch := p.Channel(t)
		if err := ch.Confirm(false); err != nil {
			t.Error(err)
		}
		for ; ctx.Err() == nil; n++ {
			m := amqp.Publishing{
				MessageId: fmt.Sprint(n), DeliveryMode: amqp.Persistent, Headers: amqp.Table{"retry-queue": "orders.created"},
			}
			confirm, err := ch.PublishWithDeferredConfirm(p.names.DeadLetterExchange(), "key", true, false, m)
			if err != nil {
				t.Error(err)
				return
			}
			if n%100 != 99 {
				continue
			}
			confirm.Wait()
			for ctx.Err() == nil && p.ready(t, ch) > ahead {
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	return func() int {
		cancel()
		publishing.Wait()
		return n
	}
}

func (p *testPipeline) ready(t *testing.T, ch *amqp.Channel) int {
	t.Helper()
	inbox, err := ch.QueueDeclarePassive(p.names.Inbox(), true, false, false, false, nil)
	if err != nil {
		t.Error(err)
	}
	return inbox.Messages
}

// A message that asks for a minute and a half is back in time, with a schedule whose longest delay is half a minute.
func TestLoadRetryAfter(t *testing.T) {
	t.Parallel()
	const wait = 90 * time.Second
	p := newPipeline(t, "orders", []string{"5s", "30s"}, 2, "orders.created")
	r := p.work(t)
	asked := time.Now()
	p.Publish(t, "orders.dlx", "", retryAfter(wait))
	got := p.await(t, "orders.created")
	took := time.Since(asked)
	t.Logf("RabbitMQ %s: back after %s", p.Version, took)
	if took < wait || took > wait+6*time.Second {
		t.Errorf("want %s, and 6 s more at most", wait)
	}
	expectHeaders(t, got, amqp.Table{"retry-count": int64(1), "retry-delay-ms": wait.Milliseconds()})
	r.awaitSeries(t, map[string]float64{"messages_received_total": 3, "messages_retried_total{delay=30s}": 3, "messages_retried_total{delay=5s}": 0})
}

func TestLoadRetryAfterOfKilledWorkers(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"5s", "30s"}, 2, "orders.created")
	p.killWorkers(t, 1000, 90*time.Second, 2*time.Second)
}

// A queue that is full for a minute stops no messages, either.
func TestLoadFullFailedQueueOfATeam(t *testing.T) {
	t.Parallel()
	testFullFailedQueue(t, time.Minute)
}
