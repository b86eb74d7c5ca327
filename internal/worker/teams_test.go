package worker_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

// parkIn sends the failed messages of a work queue to a queue of their own.
func (p *testPipeline) parkIn(t *testing.T, workQueue, failedQueue string) {
	t.Helper()
	p.DeclareQueue(t, failedQueue, "quorum", nil)
	p.Bind(t, topology.Binding{Source: p.names.FailedRouteExchange(), Destination: failedQueue, RoutingKey: pipeline.FailedKey(workQueue)})
}

// Each team gets its own failures, with any key of its publishers. Without a queue of its own, failures go to the
// pipeline's.
func TestTeamsHaveFailedQueuesOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.a", "orders.b", "orders.c")
	p.parkIn(t, "orders.a", "failures.a")
	p.parkIn(t, "orders.b", "failures.b")
	p.workPermitted(t, pipeline.WorkerPermissions(p.names))
	for _, queue := range []string{"orders.a", "orders.b", "orders.c"} {
		p.Bind(t, topology.Binding{Source: "amq.direct", Destination: queue, RoutingKey: "failed:orders.b"})
		p.consume(t, queue, nil)
	}
	p.Publish(t, "amq.direct", "failed:orders.b", amqp.Publishing{})
	for queue, failedQueue := range map[string]string{"orders.a": "failures.a", "orders.b": "failures.b", "orders.c": "orders.failed"} {
		failed := p.await(t, failedQueue)
		if failed.Headers["retry-queue"] != queue || failed.Headers["retry-routing-key"] != "failed:orders.b" ||
			failed.RoutingKey != pipeline.EscapedKey || failed.Headers["dead-letter-detour"] != nil {
			t.Errorf("%s has %q, %v", failedQueue, failed.RoutingKey, failed.Headers)
		}
		p.expectEmpty(t, failedQueue)
	}
	// This message's work queue is not known.
	p.rejectAs(t, amqp.Table{"retry-queue": "elsewhere"})
	p.awaitFailed(t, "unknown_queue")
}

// A team's queue is full for longer than the worker waits before it tries again. The others' retries go on, and nothing
// is lost.
func TestFullFailedQueueOfATeam(t *testing.T) {
	t.Parallel()
	testFullFailedQueue(t, 15*time.Second)
}

// testFullFailedQueue keeps a team's queue full for this long, under one worker and under two.
func testFullFailedQueue(t *testing.T, long time.Duration) {
	t.Helper()
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.a", "orders.b")
			p.limit(t, "failures.a", 1)
			p.parkIn(t, "orders.a", "failures.a")
			p.parkIn(t, "orders.b", "failures.b")
			p.fillQueue(t, "failures.a")
			full := p.readyIn(t, "failures.a")
			workers := make([]runningAs, replicas)
			for i := range workers {
				workers[i] = p.workPermitted(t, pipeline.WorkerPermissions(p.names))
			}
			p.consume(t, "orders.a", nil)
			b := p.consume(t, "orders.b", nil)
			parked, detoured := p.collect(t, "failures.b"), p.collect(t, "orders.failed")

			sent := p.publishFor(t, long, b, "orders.a", "orders.b")
			parked.awaitAtLeast(t, sent)
			detoured.awaitAtLeast(t, sent)
			brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", 0) })
			if n := p.readyIn(t, "failures.a"); n != full {
				t.Errorf("the full queue has %d messages, had %d", n, full)
			}
			if n := parked.copies() + detoured.copies(); n > 0 || parked.count() != sent || detoured.count() != sent {
				t.Errorf("of %d each, %d and %d were parked, %d of them twice", sent, parked.count(), detoured.count(), n)
			}
			for _, r := range workers {
				log := r.Log
				if log.Count("messages go to the refused queue") != 1 || !strings.Contains(log.String(), "detour=refused") || log.Count("msg=consuming") != 1 {
					t.Errorf("log:\n%.2000s", log)
				}
			}

			p.set(t, http.MethodDelete, p.Path("policies", "failures.a"), nil)
			p.set(t, http.MethodDelete, p.Path("queues", "failures.a", "contents"), nil)
			p.awaitParkedAgain(t, "orders.a", "failures.a")
			brokertest.Eventually(t, func() error {
				for range 3 { // an odd number: two workers take turns, and would each get the same attempt
					p.Publish(t, "", "orders.a", amqp.Publishing{MessageId: "after"})
				}
				time.Sleep(time.Second)
				for _, r := range workers {
					if r.Log.Count("take all messages again") == 0 {
						return errors.New("a worker does not say that it is over")
					}
				}
				return nil
			})
		})
	}
}

// publishFor publishes a message to each of the queues again and again, and checks that the consumer's deliveries never
// pause. It returns how many each queue got.
func (p *testPipeline) publishFor(t *testing.T, long time.Duration, watched *consumer, queues ...string) (sent int) {
	t.Helper()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	publisher := p.Channel(t)
	longest, last, seen := time.Duration(0), time.Now(), 0
	for end := time.Now().Add(long); time.Now().Before(end); <-ticks.C {
		for _, queue := range queues {
			m := amqp.Publishing{MessageId: fmt.Sprint(queue, sent), DeliveryMode: amqp.Persistent}
			require.NoError(t, publisher.PublishWithContext(t.Context(), "", queue, false, false, m))
		}
		sent++
		if n := len(watched.deliveries()); n > seen {
			longest, last, seen = max(longest, time.Since(last)), time.Now(), n
		}
	}
	longest = max(longest, time.Since(last))
	t.Logf("%d messages each, longest pause %s", sent, longest.Round(10*time.Millisecond))
	if longest > brokertest.Slow(session.ParkingPatience) {
		t.Errorf("the deliveries paused for %s", longest)
	}
	return sent
}

// awaitParkedAgain publishes to a work queue until one of its messages is in a failed queue.
func (p *testPipeline) awaitParkedAgain(t *testing.T, workQueue, failedQueue string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		p.Publish(t, "", workQueue, amqp.Publishing{MessageId: "after"})
		time.Sleep(time.Second)
		if p.readyIn(t, failedQueue) == 0 {
			return fmt.Errorf("no message in %s", failedQueue)
		}
		return nil
	})
}

// If a team's queue is deleted, its messages are lost. Later failures are in the pipeline's queue until the queue is
// there again.
func TestFailedQueueOfATeamIsDeleted(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.parkIn(t, "orders.created", "failures")
	last := func(prefix string) func(int) amqp.Publishing {
		return func(i int) amqp.Publishing {
			return amqp.Publishing{MessageId: fmt.Sprint(prefix, i), Headers: lastAttempt()}
		}
	}
	p.fillInbox(t, 3000, last("before"))
	r := p.workPermitted(t, pipeline.WorkerPermissions(p.names))
	brokertest.Eventually(t, func() error {
		if p.readyIn(t, "failures") == 0 {
			return errors.New("nothing is parked yet")
		}
		return nil
	})
	p.set(t, http.MethodDelete, p.Path("queues", "failures"), nil)
	p.fillInbox(t, 500, last("after"))
	// A deletion during a publish can cost a session, and the next session takes its messages one by one.
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", 0) })
	parked := p.collect(t, "orders.failed")
	brokertest.Eventually(t, func() error {
		for i := range 500 {
			if id := fmt.Sprint("after", i); !parked.has(id) {
				return fmt.Errorf("%s is not in the pipeline's failed queue", id)
			}
		}
		return nil
	})
	p.parkIn(t, "orders.created", "failures")
	p.consume(t, "orders.created", nil)
	p.awaitParkedAgain(t, "orders.created", "failures")
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", 0) })
	// RabbitMQ 3.10 can fail on a publish to a queue that is being deleted, which costs a session.
	if n := r.Log.Count("session ended") - r.Log.Count("INTERNAL_ERROR"); n != 0 {
		t.Errorf("%d sessions ended:\n%.2000s", n, r.Log)
	}
}

// If the exchange that leads to the failed queues is missing or forbidden, everything is parked in the pipeline's
// failed queue.
func TestWayToTheFailedQueuesIsClosed(t *testing.T) {
	t.Parallel()
	for why, bar := range map[string]func(*testing.T, *testPipeline, string){
		"missing": func(t *testing.T, p *testPipeline, _ string) {
			p.set(t, http.MethodDelete, p.Path("exchanges", p.names.FailedRouteExchange()), nil)
		},
		"forbidden": func(t *testing.T, p *testPipeline, user string) {
			permissions := pipeline.WorkerPermissions(p.names)
			permissions.Write = strings.ReplaceAll(permissions.Write, `orders\.failed\.route`, "none")
			p.grant(t, user, permissions)
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.a")
			p.parkIn(t, "orders.a", "failures.a")
			r := p.workPermitted(t, pipeline.WorkerPermissions(p.names))
			bar(t, p, r.user)
			p.consume(t, "orders.a", nil)
			for i := range 3 {
				p.Publish(t, "", "orders.a", amqp.Publishing{MessageId: fmt.Sprint(i)})
			}
			for range 3 {
				if failed := p.awaitFailed(t, "exhausted"); failed.Headers["dead-letter-detour"] != why {
					t.Errorf("headers %v", failed.Headers)
				}
			}
			p.Create(t, topology.Topology{Exchanges: pipeline.ExpandExchanges(p.spec)})
			p.Bind(t, topology.Binding{Source: p.names.FailedRouteExchange(), Destination: "failures.a", RoutingKey: pipeline.FailedKey("orders.a")})
			p.grant(t, r.user, pipeline.WorkerPermissions(p.names))
			p.awaitParkedAgain(t, "orders.a", "failures.a")
			if log := r.Log; log.Count("msg=consuming") != 1 {
				t.Errorf("log:\n%.2000s", log)
			}
		})
	}
}

// readyIn returns how many messages of a queue are ready.
func (p *testPipeline) readyIn(t *testing.T, queue string) int {
	t.Helper()
	declared, err := p.Channel(t).QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(t, err)
	return declared.Messages
}
