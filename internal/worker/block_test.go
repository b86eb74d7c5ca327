package worker_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

func TestBlockedWorkerStopsAtOnceWhenNothingIsInFlight(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	x := &proxy{}
	r := p.workAs(t, p.throughProxy(t, x), p.spec.Worker())
	r.awaitReady(t, "")
	x.block()
	r.Log.Await(t, "the broker accepts no messages", 1)
	r.awaitReady(t, "the broker blocks publishers")
	r.awaitSeries(t, map[string]float64{"ready": 0, "blocked": 1, "consuming": 1})
	// The broker delivers these, but the worker does not take them while it is blocked.
	p.fillInbox(t, 10, mixed)
	began := time.Now()
	r.stop(t)
	if took := time.Since(began); took > brokertest.Slow(session.DefaultAckPatience) || r.err != nil {
		t.Errorf("stopped after %s: %v", took, r.err)
	}
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", 10) })
}

// A broker that blocks publishers and otherwise only sends heartbeats delays the worker's end no longer than the guide
// says.
func TestBlockedWorkerStopsInTime(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	const beat, drain, most = 100 * time.Millisecond, time.Second, 5 * time.Second
	done := make(chan struct{})
	defer close(done)
	x := &proxy{}
	x.rewrite = func(frame []byte) {
		if method(frame) == basicPublish {
			x.block()
			<-done
		}
	}
	r := p.workWith(t, p.throughProxy(t, x), p.spec.Worker(), func(_ context.Context, o *worker.Options) { o.DrainTimeout = drain })
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
	r.Log.Await(t, "the broker accepts no messages", 1)
	r.cancel()
	beats := 0 // a busy machine delays these as well as the worker
	for stopped := false; !stopped; beats++ {
		x.tell("\x08\x00\x00\x00\x00\x00\x00\xce")
		_, stopped = brokertest.Within(r.done, beat)
	}
	if beats > int((drain+most)/beat) || r.err == nil {
		t.Errorf("stopped after %d beats: %v", beats, r.err)
	}
}

// While the broker blocks, the worker does not read deliveries. Once their connection is closed, it can no longer
// acknowledge the messages in flight.
func TestInboxIsLostWhileTheBrokerBlocks(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	x := &proxy{}
	r := p.workAs(t, p.throughProxy(t, x), p.spec.Worker())
	r.Log.Await(t, "msg=consuming", 1)
	x.block()
	r.Log.Await(t, "the broker accepts no messages", 1)
	p.closeConnection(t, "rabbitmq-retry orders consume")
	r.Log.Await(t, "session ended", 1)
	r.Log.Await(t, "msg=consuming", 2)
	p.retries(t)
}
