package session

import (
	"fmt"
	"runtime/debug"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// Judge handles a message, and may meet one that nobody thought of: a panic is survived.
type Judge struct {
	// Decide decides what happens to a delivery.
	Decide func(*deadletter.Pipeline, *amqp.Delivery, time.Time) deadletter.Verdict
	// Build builds what is published for it.
	Build func(*deadletter.Pipeline, deadletter.Verdict, *amqp.Delivery, deadletter.Stamp) (amqp.Publishing, error)
}

// NewJudge returns the one for production. Tests put a fault in.
func NewJudge() Judge {
	return Judge{
		Decide: func(p *deadletter.Pipeline, d *amqp.Delivery, now time.Time) deadletter.Verdict {
			return p.Decide(p.Read(d), now)
		},
		Build: (*deadletter.Pipeline).Publishing,
	}
}

// judge decides what happens to a delivery; one that cannot be judged is parked.
func (s *Session) judge(m *message) (v deadletter.Verdict) {
	m.judgedBy = s.Pipeline
	if err := s.survive(m, func() { v = s.Judge.Decide(s.Pipeline, &m.delivery, time.Now()) }); err != nil {
		return deadletter.Unjudged(&m.delivery)
	}
	return v
}

// build builds what is published for a message. An error that is a [panicError] says that something else
// may yet be.
func (s *Session) build(m *message, stamp deadletter.Stamp) (publishing amqp.Publishing, err error) {
	if panicked := s.survive(m, func() {
		publishing, err = s.Judge.Build(s.Pipeline, m.sent, &m.delivery, stamp)
	}); panicked != nil {
		return amqp.Publishing{}, panicked
	}
	return publishing, err
}

// survive turns a panic over one message into an error: ending the process would take all that is in
// flight along, again and again.
func (s *Session) survive(m *message, handle func()) (err error) {
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		err = panicError{fault}
		if !m.panicked {
			s.Log.Error("internal error (panic); message moved to the failed queue",
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

// reconfigure puts a new configuration of the session's pipeline in force. What was sent to the broker
// keeps its verdict. What the broker does not accept is judged again before it is published again, as it
// would be if it were delivered again.
func (s *Session) reconfigure(p *deadletter.Pipeline) {
	s.Pipeline = p
	for _, publisher := range s.all() {
		// What was refused may go elsewhere now, and would never be answered there.
		publisher.nackedSince = time.Time{}
	}
	s.detours.reconfigure(p)
	s.unbound.reset()
	s.Log.Info("configuration changed")
}

// rejudged judges a message again if the configuration has changed, and reports whether it has.
func (s *Session) rejudged(m *message) bool {
	if m.judgedBy == s.Pipeline {
		return false
	}
	m.verdict = s.judge(m)
	return true
}
