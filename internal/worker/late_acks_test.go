package worker_test

import (
	"context"
	endian "encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Methods of AMQP: class and number.
const (
	queueDeclareOK = 50<<16 | 11
	basicConsume   = 60<<16 | 20
	basicCancelOK  = 60<<16 | 31
	basicPublish   = 60<<16 | 40
	basicAck       = 60<<16 | 80
)

// method returns the method of a frame, or 0 if the frame has none.
func method(frame []byte) uint32 {
	if frame[0] != 1 {
		return 0
	}
	return endian.BigEndian.Uint32(frame[7:])
}

// lateAcks makes a broker seem slow to a worker that stops. The last acknowledgements arrive after the end of the
// consumers, a while after they were sent. So does everything that the worker sends meanwhile.
type lateAcks struct {
	by        time.Duration
	stopping  atomic.Bool
	cancelled chan struct{}
	consumers atomic.Int32
	late      sync.Once
	held      atomic.Int32
}

// toWorker holds confirms back until the consumers have ended.
func (l *lateAcks) toWorker(frame []byte) {
	switch method(frame) {
	case basicCancelOK:
		if l.consumers.Add(1) == 2 {
			close(l.cancelled)
		}
	case basicAck:
		if l.stopping.Load() {
			brokertest.Within(l.cancelled, brokertest.Patience)
		}
	}
}

func (l *lateAcks) toBroker(frame []byte) {
	if method(frame) != basicAck {
		return
	}
	select {
	case <-l.cancelled:
		l.late.Do(func() { time.Sleep(l.by) })
		l.held.Add(1)
	default:
	}
}

// A stopping worker waits until the inbox has its acknowledgements, even if they are late or there are other consumers.
func TestLateAcknowledgements(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		queueType string
		others    int
	}{
		"quorum":               {topology.Quorum, 0},
		"quorum, with another": {topology.Quorum, 1},
		"classic":              {topology.Classic, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipelineOf(t, newSpec(test.queueType, []string{"100ms"}, 3, "orders.created"))
			const messages = 10_000
			p.fillInbox(t, messages, toRetry)
			letGo := p.holdOne(t, test.others)
			a := p.collect(t, "orders.created")
			l := &lateAcks{by: 2 * time.Second, cancelled: make(chan struct{})}
			r := p.workWith(t, p.throughProxy(t, &proxy{rewrite: l.toBroker, rewriteBack: l.toWorker}), p.spec.Worker(), patiently)
			a.awaitAtLeast(t, 1000)
			l.stopping.Store(true)
			r.stop(t)
			if r.err != nil || strings.Contains(r.Log.String(), "possibly lacks") {
				t.Errorf("error %v, log:\n%s", r.err, r.Log)
			}
			if l.held.Load() == 0 {
				t.Error("no acknowledgement was late")
			}
			letGo()
			p.work(t)
			a.awaitAtLeast(t, messages)
			brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
			if doubled := a.copies(); doubled > 0 {
				t.Errorf("%d messages are doubled", doubled)
			}
		})
	}
}

// patiently gives a stopping worker all the time that a busy machine needs.
func patiently(_ context.Context, o *worker.Options) {
	o.DrainTimeout = brokertest.Patience
	o.WithAckPatience(brokertest.Patience)
}

// A stopping worker does not wait for the consumers of a worker that starts meanwhile, as in a rolling update.
func TestOtherWorkerComesWhileOneStops(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	a := p.collect(t, "orders.created")
	stopping, counted := make(chan struct{}), make(chan struct{})
	var seen sync.Once
	r := p.workWith(t, p.throughProxy(t, &proxy{rewriteBack: func(frame []byte) {
		switch m := method(frame); {
		case m == queueDeclareOK && frame[len(frame)-2] == 2: // the number of consumers
			seen.Do(func() { close(counted) })
		case m == basicAck:
			select {
			case <-stopping:
				<-counted
			default:
			}
		}
	}}), p.spec.Worker(), patiently)
	r.Log.Await(t, "msg=consuming", 1)
	close(stopping)
	// This message is in flight until the other worker is there.
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
	a.awaitAtLeast(t, 1)
	r.cancel()
	p.work(t).Log.Await(t, "msg=consuming", 1)
	r.stop(t)
	if r.err != nil || strings.Contains(r.Log.String(), "possibly lacks") {
		t.Errorf("error %v, log:\n%s", r.err, r.Log)
	}
}

// holdOne makes other consumers hold one message of the inbox each, until the returned function is called.
func (p *testPipeline) holdOne(t *testing.T, consumers int) (letGo func()) {
	t.Helper()
	ch := p.Channel(t)
	require.NoError(t, ch.Qos(1, 0, false))
	for range consumers {
		deliveries, err := ch.Consume(p.names.Inbox(), "", false, false, false, false, nil)
		require.NoError(t, err)
		<-deliveries
	}
	return func() { _ = ch.Close() }
}
