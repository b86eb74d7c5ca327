package worker_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// mixed returns a message to retry, and every tenth time a message to give up.
func mixed(i int) amqp.Publishing {
	headers := amqp.Table{"retry-queue": "orders.created"}
	if i%10 == 0 {
		headers["retry"] = "never"
	}
	return amqp.Publishing{Headers: headers}
}

// A missing or forbidden exchange must not stop messages to other exchanges, and must not cause copies of them.
func TestMissingExchangeStopsOnlyWhatGoesThere(t *testing.T) {
	t.Parallel()
	const missing, forbidden = "the exchange is missing; run terraform apply", "grant it the permission"
	for name, test := range map[string]struct{ delay, exchange, log string }{
		"failed":    {"100ms", "orders.failed", missing},
		"retry":     {"100ms", "orders.retry", missing},
		"return":    {"0s", "orders.return", missing},
		"forbidden": {"100ms", "orders.failed", forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{test.delay}, 3, "orders.created")
			p.fillInbox(t, 200, mixed)
			all := pipeline.WorkerPermissions(p.names)
			permissions, most := all, 1
			if test.log == forbidden {
				// One line is for the first exchange. If that is still forbidden after five seconds, two more follow:
				// one for the detour, and one for the second exchange.
				permissions, most = without(all, test.exchange), 3
			} else {
				p.set(t, "DELETE", p.Path("exchanges", test.exchange), nil)
			}
			r := p.workPermitted(t, permissions)

			created, failed := p.collect(t, "orders.created"), p.collect(t, "orders.failed")
			if test.exchange == "orders.failed" {
				created.awaitAtLeast(t, 180)
				p.awaitBacklog(t, r.running, 20)
			} else {
				failed.awaitAtLeast(t, 20)
				p.awaitBacklog(t, r.running, 180)
			}
			p.Create(t, p.spec.Expand())
			p.grant(t, r.user, all)
			created.awaitAtLeast(t, 180)
			failed.awaitAtLeast(t, 20)
			p.expectSettled(t, r.running, created, failed)
			lines := r.Log.Count(test.log)
			require.True(t, 1 <= lines && lines <= most, "%d lines %q", lines, test.log)
		})
	}
}

// An exchange that is created again gets its bindings a little later.
func TestExchangeThatIsBackBeforeItsBindings(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 3, "orders.created")
	p.fillInbox(t, 20, toRetry)
	p.set(t, "DELETE", p.Path("exchanges", "orders.retry"), nil)
	r := p.work(t)
	created := p.collect(t, "orders.created")
	p.awaitBacklog(t, r, 20)
	p.set(t, "PUT", p.Path("exchanges", "orders.retry"), map[string]any{"type": "direct", "durable": true})
	time.Sleep(4 * time.Second) // longer than the worker waits before it tries again
	p.Create(t, p.spec.Expand())
	created.awaitAtLeast(t, 20)
	p.expectSettled(t, r, created)
	p.expectEmpty(t, "orders.failed")
}

// The message that makes the broker close the channel need not be the oldest unanswered one.
func TestMessageThatTheBrokerDoesNotAcceptIsParked(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	const messages, unacceptable = 1000, 10
	p.fillInbox(t, messages, func(i int) amqp.Publishing {
		m := amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}}
		if i%100 == 50 {
			m.Headers["bad"] = "x"
		}
		if i == 150 {
			m.Headers["retry"] = "never" // this one goes to the failed exchange
		}
		return m
	})
	r := p.workAs(t, p.throughProxy(t, &proxy{rewrite: invalidate}), p.spec.Worker())
	created := p.collect(t, "orders.created")
	created.awaitAtLeast(t, messages-unacceptable)
	for range unacceptable {
		d := p.await(t, "orders.failed")
		if death := d.Headers["x-death"].([]any)[0].(amqp.Table); d.Headers["bad"] != "x" || death["queue"] != "orders.inbox" {
			t.Errorf("parked with headers %v", d.Headers)
		}
	}
	p.expectSettled(t, r)
	// Messages that the broker took without a confirm before it closed the channel come twice. Further bad messages are
	// alone.
	t.Logf("%d copies", created.copies())
	if n := created.copies(); n > worker.DefaultPrefetch {
		t.Errorf("%d copies, want no more than a window", n)
	}
	if n := r.Log.Count("message left to the broker"); n != unacceptable {
		t.Errorf("%d messages were left to the broker, want %d:\n%s", n, unacceptable, r.Log)
	}
}

// The end of the session would copy other messages.
func TestMessageOfASilentDelayIsGivenUpAlone(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"0s", "1h"}, 3, "orders.created")
	p.Publish(t, "orders.dlx", "stuck", amqp.Publishing{MessageId: "stuck", Headers: amqp.Table{
		"retry-queue": "orders.created", "retry-pipeline": "orders", "retry-count": 1,
	}})
	q := newSilentQueue("orders.retry", "stuck")
	r := p.workAs(t, p.throughProxy(t, &proxy{rewrite: q.fromWorker, answers: q.toWorker}), p.spec.Worker())

	a := p.collect(t, "orders.created")
	sent := 0
	for r.Log.Count("messages take another delay") == 0 {
		p.fillInbox(t, 500, func(i int) amqp.Publishing {
			return amqp.Publishing{MessageId: fmt.Sprint(sent + i), Headers: amqp.Table{"retry-queue": "orders.created"}}
		})
		sent += 500
		a.awaitAtLeast(t, sent-1000) // no faster than the worker
	}
	a.awaitAtLeast(t, sent)
	if n := a.copies(); n > 0 {
		t.Errorf("%d of %d messages came twice", n, sent)
	}
	require.Equal(t, "stuck", p.await(t, "orders.retry.1h").MessageId)
	require.Zero(t, r.Log.Count("session ended"))
}

// awaitBacklog waits until the worker keeps this many messages of the inbox unacknowledged, and checks that they stay.
func (p *testPipeline) awaitBacklog(t *testing.T, r *running, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if r.Log.Count("messages kept unacknowledged")+r.Log.Count("message kept unacknowledged") == 0 {
			return fmt.Errorf("nothing is kept:\n%s", r.Log)
		}
		return p.countIs(t, "orders.inbox", want)
	})
}

// expectSettled checks that the inbox becomes empty, in one session and without copies.
func (p *testPipeline) expectSettled(t *testing.T, r *running, queues ...*arrivals) {
	t.Helper()
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", 0) })
	r.stop(t) // then all its publishes have arrived
	for _, queue := range queues {
		if n := queue.copies(); n > 0 {
			t.Errorf("%d messages came twice", n)
		}
	}
	require.Zero(t, r.Log.Count("session ended"))
}

// After the size limit was lowered, the broker refuses messages that a queue already has. The worker sends them alone.
func TestLargeMessageThatTheBrokerDoesNotAcceptMakesNoCopies(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	const messages, large = 600, 16 << 20
	p.fillInbox(t, messages, func(i int) amqp.Publishing {
		m := amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}}
		if i == messages/2 {
			m.Headers["bad"], m.Body = "x", make([]byte, large)
		}
		return m
	})
	r := p.workAs(t, p.throughProxy(t, &proxy{rewrite: invalidate}), p.spec.Worker())
	created := p.collect(t, "orders.created")
	created.awaitAtLeast(t, messages-1)
	if d := p.await(t, "orders.failed"); d.Headers["bad"] != "x" || len(d.Body) != large {
		t.Errorf("parked %d bytes with headers %v", len(d.Body), d.Headers)
	}
	p.expectSettled(t, r, created)
}
