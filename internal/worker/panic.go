package worker

import (
	"fmt"
	"runtime/debug"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// What handles a message and may meet one that nobody thought of. Tests put a fault in.
var (
	decide = func(p *deadletter.Pipeline, d *amqp.Delivery) deadletter.Verdict {
		return p.Decide(p.Read(d), time.Now())
	}
	build = (*deadletter.Pipeline).Publishing
)

// judge decides what happens to a delivery; one that cannot be judged is parked.
func (s *session) judge(m *message) (v deadletter.Verdict) {
	d := &m.delivery
	m.judgedBy = s.pipeline
	if err := s.survive(m, func() { v = decide(s.pipeline, d) }); err != nil {
		letter := deadletter.Letter{Exchange: d.Exchange, RoutingKey: d.RoutingKey}
		return deadletter.Verdict{Letter: letter, Action: deadletter.Fail, Reason: deadletter.ReasonWorkerError}
	}
	return v
}

// build builds what is published for a message. One that can only be parked is.
func (s *session) build(m *message, stamp deadletter.Stamp) (publishing amqp.Publishing, err error) {
	if panicked := s.survive(m, func() {
		publishing, err = build(s.pipeline, m.sent, &m.delivery, stamp)
	}); panicked != nil {
		return amqp.Publishing{}, panicked
	}
	return publishing, err
}

// survive turns a panic over one message into an error: ending the process would take all that is in
// flight along, again and again.
func (s *session) survive(m *message, handle func()) (err error) {
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		err = panicError{fault}
		if !m.panicked {
			s.log.Error("a fault of this program: message given up",
				"panic", fault, "message_id", m.delivery.MessageId, "stack", string(debug.Stack()))
		}
		m.panicked = true
	}()
	handle()
	return nil
}

// panicError is a panic that was survived.
type panicError struct{ fault any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.fault) }
