package worker_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// After small messages have widened the window, messages of any size come back, and the worker stays small.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestLargeMessagesLeaveTheWorkerSmall(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		messages, size int
		limit          string
		most           float64 // MiB
	}{
		{100, mib, "48MiB", 75},
		{12, 16*mib - 4096, "48MiB", 130}, // of 192 MiB in all, while other tests keep the processors busy
	} {
		t.Run(fmt.Sprintf("%d KiB %s", c.size>>10, c.limit), func(t *testing.T) {
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			small := p.fillInbox(t, 2*rampMessages, func(i int) amqp.Publishing {
				return amqp.Publishing{MessageId: fmt.Sprint("small-", i), Headers: amqp.Table{"retry-queue": "orders.created"}}
			})
			body := make([]byte, c.size)
			p.fillInbox(t, c.messages, func(int) amqp.Publishing {
				return amqp.Publishing{Body: body, Headers: amqp.Table{"retry-queue": "orders.created"}}
			})
			a := p.collect(t, "orders.created")
			began := time.Now()
			w := p.start(t, "GOMEMLIMIT="+c.limit)
			a.awaitAtLeast(t, len(small)+c.messages)
			peak := w.PeakMemory(t)
			t.Logf("%.1f MiB at most, after %s", peak, time.Since(began))
			if peak > c.most {
				t.Errorf("%.1f MiB of resident memory, want at most %.0f", peak, c.most)
			}
			if code := w.End(t, syscall.SIGTERM); code != 0 || a.copies() != 0 {
				t.Errorf("exit code %d, %d copies", code, a.copies())
			}
		})
	}
}

// smallWindow is full, in bytes, with two large messages.
func smallWindow(_ context.Context, o *worker.Options) {
	o.Prefetch, o.DrainTimeout = 8, time.Second
}

func large(headers amqp.Table) func(int) amqp.Publishing {
	body := make([]byte, 256<<10)
	return func(int) amqp.Publishing { return amqp.Publishing{Body: body, Headers: headers} }
}

// Messages that fill the window in bytes and cannot be published do not keep the worker from stopping or going on.
func TestWorkerWithAFullWindowInBytes(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.unbindFailedQueue(t)
	const messages = 30
	r := p.workWith(t, p.URI, p.spec.Worker(), smallWindow)
	p.endRamp(t, p.collect(t, "orders.created"))
	p.fillInbox(t, messages, large(lastAttempt()))
	r.Log.Await(t, "messages are large", 1)
	began := time.Now()
	r.stop(t)
	if took := time.Since(began); took > stopsWithin(time.Second) || !strings.Contains(r.err.Error(), "still in flight") {
		t.Errorf("stopped after %s: %v", took, r.err)
	}
	again := p.workWith(t, p.URI, p.spec.Worker(), smallWindow)
	again.Log.Await(t, "message kept unacknowledged", 1)
	p.Bind(t, topology.Binding{Source: "orders.failed", Destination: "orders.failed"})
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), messages) })
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
	require.Equal(t, 1, again.Log.Count("msg=consuming"))
}

// The window in bytes is full before the broker has answered the second consumer.
func TestLargeMessagesAreTheFirstOfAWideWindow(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		const ramp, messages = 30, 30
		p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
		p.fillInbox(t, ramp, func(i int) amqp.Publishing {
			return amqp.Publishing{MessageId: fmt.Sprint("small-", i), Headers: amqp.Table{"retry-queue": "orders.created"}}
		})
		p.fillInbox(t, messages, large(amqp.Table{"retry-queue": "orders.created"}))
		a := p.collect(t, "orders.created")
		r := p.workWith(t, p.URI, p.spec.Worker(), smallWindow)
		a.awaitAtLeast(t, ramp+messages)
		if n := r.Log.Count("msg=consuming"); n != 1 || a.copies() != 0 {
			t.Errorf("%d sessions, %d copies", n, a.copies())
		}
	})
}

// During an alarm, unread messages go back to the broker, since they can be the cause of the alarm.
func TestLargeMessagesGoBackDuringAnAlarm(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	const messages = 30
	x := &proxy{}
	r := p.workWith(t, p.throughProxy(t, x), p.spec.Worker(), smallWindow)
	a := p.collect(t, "orders.created")
	p.endRamp(t, a)
	x.block()
	r.Log.Await(t, "the broker accepts no messages", 1)
	p.fillInbox(t, messages, large(amqp.Table{"retry-queue": "orders.created"}))
	r.Log.Await(t, "giving them back", 1)
	a.awaitAtLeast(t, messages+rampMessages)
	if n := a.copies(); n != 0 {
		t.Errorf("%d copies", n)
	}
}
