package worker_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// A message that ends every session uses up only its own delivery limit.
func TestMessageThatEndsSessionsGoesAlone(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	p.set(t, "PUT", p.Path("policies", "limit"), map[string]any{
		"pattern": `^orders\.inbox$`, "apply-to": "queues", "priority": 5000, "definition": map[string]any{"delivery-limit": 2},
	})
	const messages, bad = 50, 10
	p.fillInbox(t, messages, func(i int) amqp.Publishing {
		headers := amqp.Table{"retry-queue": "orders.created"}
		if i == bad {
			headers["deadly"] = true
		}
		return amqp.Publishing{Headers: headers}
	})
	a := p.collect(t, "orders.created")
	x := &proxy{}
	x.rewrite = func(frame []byte) {
		if bytes.Contains(frame, []byte("\x06deadly")) {
			x.hangUp()
		}
	}
	p.workAs(t, p.throughProxy(t, x), p.spec.Worker())
	a.awaitAtLeast(t, messages-1)
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 1) })
	if d := p.await(t, p.names.FailedQueue()); d.MessageId != fmt.Sprint(bad) {
		t.Errorf("message %q is in the failed queue", d.MessageId)
	}
	if n := a.copies(); n > 3 {
		t.Errorf("%d copies, want at most one a session", n)
	}
}

// A lost connection under load is no message's fault, so the next session soon takes the whole window.
func TestSessionAfterALostConnectionSoonTakesTheWholeWindow(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	const messages = 2000
	p.fillInbox(t, messages, toRetry)
	var consumers, alone atomic.Int32 // of all sessions, and the messages that the second session takes one at a time
	unconfirmed, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	var once sync.Once
	x := &proxy{
		rewrite: func(frame []byte) {
			switch method(frame) {
			case basicConsume:
				consumers.Add(1)
			case basicAck:
				if consumers.Load() == 3 {
					alone.Add(1)
				}
			}
		},
		rewriteBack: func(frame []byte) {
			if method(frame) == basicAck && consumers.Load() == 2 {
				once.Do(func() { close(unconfirmed) })
				<-done
			}
		},
	}
	r := p.workAs(t, p.throughProxy(t, x), p.spec.Worker())
	a := p.collect(t, "orders.created")
	<-unconfirmed
	p.closeConnection(t, "rabbitmq-retry orders consume")
	brokertest.Eventually(t, func() error {
		if state := r.seen.Statuses()[0].State; state != "connected" {
			return fmt.Errorf("the worker is %s", state)
		}
		return nil
	})
	x.hangUp()
	a.awaitAtLeast(t, messages)
	if n := alone.Load(); n >= worker.DefaultPrefetch {
		t.Errorf("%d messages went one at a time", n)
	}
}

// rampMessages are enough for a session to take the whole window.
const rampMessages = 40

// endRamp makes the session take the whole window.
func (p *testPipeline) endRamp(t *testing.T, a *arrivals) {
	t.Helper()
	p.fillInbox(t, rampMessages, func(i int) amqp.Publishing {
		return amqp.Publishing{MessageId: fmt.Sprint("ramp-", i), Headers: amqp.Table{"retry-queue": "orders.created"}}
	})
	a.awaitAtLeast(t, rampMessages)
	ch := p.Channel(t)
	brokertest.Eventually(t, func() error {
		inbox, err := ch.QueueDeclarePassive(p.names.Inbox(), true, false, false, false, nil)
		require.NoError(t, err)
		if inbox.Consumers != 2 {
			return fmt.Errorf("the inbox has %d consumers", inbox.Consumers)
		}
		return nil
	})
}
