package session

import (
	"fmt"
	"runtime/debug"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// judge decides what happens to a delivery; one that cannot be judged is parked.
func (s *Session) judge(m *message) (v verdict) {
	m.judgedBy = s.Flow.Config()
	judge := func() { v = s.Flow.judge(&m.delivery, time.Now()) }
	if m.replaced != nil {
		judge = func() { v = s.Flow.undeliverable(&m.delivery, m.replaced.Error()) }
	}
	if err := s.survive(m, judge); err != nil {
		return s.Flow.unjudged(&m.delivery)
	}
	return v
}

// build builds what is published for a message. An error that is a [panicError] says that something else
// may yet be.
func (s *Session) build(m *message, stamp deadletter.Stamp) (publishing amqp.Publishing, err error) {
	if panicked := s.survive(m, func() {
		publishing, err = s.Flow.build(m.sent, &m.delivery, stamp)
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
			s.Log.Error("internal error (panic); message parked",
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

// reconfigure puts a new configuration of the session's flow in force. What was sent to the broker
// keeps its verdict. What the broker does not accept is judged again before it is published again, as it
// would be if it were delivered again.
func (s *Session) reconfigure(c Config) {
	for _, publisher := range s.publishers.all {
		// What was refused may go elsewhere now, and would never be answered there.
		publisher.nackedSince = time.Time{}
	}
	s.Flow.Configure(c)
	s.Log.Info("configuration changed")
}

// rejudged judges a message again if the configuration has changed, and reports whether it has.
func (s *Session) rejudged(m *message) bool {
	if m.judgedBy == s.Flow.Config() {
		return false
	}
	m.verdict = s.judge(m)
	return true
}
