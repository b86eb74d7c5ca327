package worker_test

import (
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// retryAfter returns a message that asks for a wait.
func retryAfter(wait time.Duration) amqp.Publishing {
	return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "retry-after-ms": wait.Milliseconds()}}
}

// A wait longer than any delay combines several delays, and counts as one attempt. The worker needs no more permissions
// for it.
func TestRetryAfterLongerThanAnyDelay(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		p := newPipelineOf(t, newSpec(queueType, []string{"1s", "2s"}, 2, "orders.created"))
		user, password := p.User(t, "", "^$", `^orders\.(retry|return|failed\.route)$`, `^orders\.inbox$`)
		p.workAs(t, withUser(t, p.URI, user, password), p.spec.Worker())
		asked := time.Now()
		p.Publish(t, "orders.dlx", "eu.orders", retryAfter(5*time.Second))
		d := p.await(t, "orders.created")
		took := time.Since(asked)
		t.Logf("RabbitMQ %s: back after %s", p.Version, took)
		if took < 5*time.Second {
			t.Error("that is early")
		}
		expectHeaders(t, d, amqp.Table{
			"retry-count": int64(1), "retry-delay-ms": int64(5000), "retry-due-at": nil, "retry-after-ms": nil, "retry-routing-key": "eu.orders",
		})
		require.Equal(t, "eu.orders", d.RoutingKey)
		p.expectEmpty(t, p.names.FailedQueue())
	})
}

func TestRetryAfterThatIsParked(t *testing.T) {
	t.Parallel()
	spec := newSpec(topology.Quorum, []string{"1s", "2s"}, 2, "orders.created")
	spec.MaxAge = pipeline.Delay{Wait: 10 * time.Minute, Spelling: "10m"}
	p := newPipelineOf(t, spec)
	p.work(t)
	for reason, wait := range map[string]time.Duration{"too_old": 601 * time.Second, "retry_after_too_long": 2001 * time.Second} {
		p.Publish(t, "orders.dlx", "", retryAfter(wait))
		expectHeaders(t, p.awaitFailed(t, reason), amqp.Table{"retry-due-at": nil, "retry-count": int64(1)})
	}
	p.expectEmpty(t, "orders.created")
}

// Workers that are killed while messages wait lose no message, and bring no message back early.
func TestRetryAfterOfKilledWorkers(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"1s", "2s"}, 2, "orders.created")
	p.killWorkers(t, 200, 5*time.Second, 300*time.Millisecond)
}

// killWorkers makes messages wait, and kills one of two workers again and again until all messages are back.
func (p *testPipeline) killWorkers(t *testing.T, messages int, wait, every time.Duration) {
	t.Helper()
	w, kills := p.start(t), 0
	missing := p.askFor(t, messages, wait)
	for missing() > 0 {
		next := p.start(t)
		time.Sleep(every)
		w.End(t, syscall.SIGKILL)
		w, kills = next, kills+1
	}
	t.Logf("RabbitMQ %s: %d messages, %d workers killed", p.Version, messages, kills)
	p.expectEmpty(t, p.names.FailedQueue())
}

// askFor makes messages wait, and returns a function that counts the missing ones. No message must be early.
func (p *testPipeline) askFor(t *testing.T, n int, wait time.Duration) (missing func() int) {
	t.Helper()
	asked, back, latest := make([]time.Time, n), &arrivals{seen: map[string]bool{}}, time.Now()
	for i := range asked {
		m := retryAfter(wait)
		m.MessageId, m.DeliveryMode = strconv.Itoa(i), amqp.Persistent
		asked[i] = time.Now()
		p.Publish(t, "orders.dlx", "", m)
	}
	p.consume(t, "orders.created", func(d amqp.Delivery) error {
		back.mu.Lock()
		defer back.mu.Unlock()
		i, err := strconv.Atoi(d.MessageId)
		if took := time.Since(asked[i]); err != nil || took < wait || d.Headers["retry-count"] != int64(1) {
			t.Errorf("message %s is back after %s: %v", d.MessageId, took, d.Headers)
		}
		back.seen[d.MessageId], latest = true, time.Now()
		return d.Ack(false)
	})
	return func() int {
		back.mu.Lock()
		defer back.mu.Unlock()
		if time.Since(latest) > wait+brokertest.Patience {
			t.Fatalf("%d of %d messages are back, then none for %s", len(back.seen), n, wait+brokertest.Patience)
		}
		return n - len(back.seen)
	}
}

// Changes while a message waits neither lose it nor bring it back early.
func TestRetryAfterAcrossChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*testing.T, *testPipeline)
		reason string
	}{
		"binding missing": {func(t *testing.T, p *testPipeline) { t.Helper(); p.recreate(t, "orders.created") }, ""},
		"work queue gone": {func(t *testing.T, p *testPipeline) {
			t.Helper()
			p.set(t, http.MethodDelete, p.Path("queues", "orders.created"), nil)
		}, "unknown_queue"},
		"delays retired": {func(t *testing.T, p *testPipeline) {
			t.Helper()
			for _, delay := range []string{"1s", "2s"} {
				require.NoError(t, p.Channel(t).QueueUnbind("orders.retry."+delay, "delay:"+delay, "orders.retry", nil))
			}
			p.spec.Delays = newSpec(topology.Quorum, []string{"3s"}, 2).Delays
			p.Create(t, p.spec.Expand())
		}, ""},
		"worker late": {func(*testing.T, *testPipeline) { time.Sleep(5 * time.Second) }, ""},
		"worker late, binding missing": {func(t *testing.T, p *testPipeline) {
			t.Helper()
			time.Sleep(5 * time.Second)
			p.recreate(t, "orders.created")
		}, ""},
		"removed from the configuration": {func(t *testing.T, p *testPipeline) {
			t.Helper()
			delete(p.spec.WorkQueues, "orders.created")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"1s", "2s"}, 2, "orders.created", "orders.paid")
			asked := time.Now()
			p.Publish(t, "orders.dlx", "", retryAfter(5*time.Second))
			before := p.work(t)
			before.awaitSeries(t, map[string]float64{"messages_retried_total{delay=2s}": 1})
			before.stop(t)
			test.change(t, p)
			p.work(t)
			if test.reason != "" {
				p.awaitFailed(t, test.reason)
			} else {
				expectHeaders(t, p.await(t, "orders.created"), amqp.Table{"retry-count": int64(1), "retry-due-at": nil})
			}
			if took := time.Since(asked); took < 5*time.Second {
				t.Errorf("back after %s", took)
			}
		})
	}
}
