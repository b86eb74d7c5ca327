package worker

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// block follows the broker's resource alarms, during which it takes no messages.
func (s *session) block(b amqp.Blocking, ok bool) error {
	if !ok {
		// The connection is closed: so are the publishers, and they know why.
		s.blockings = nil
		return nil
	}
	s.blocked = b.Active
	if b.Active {
		s.log.Warn("the broker takes no messages: waiting for its alarm to clear", "reason", b.Reason)
		return nil
	}
	s.log.Info("the broker takes messages again")
	if err := s.inboxLost(); err != nil {
		return err
	}
	s.unblockedAt = time.Now()
	for _, p := range s.publishers() {
		if err := s.release(p); err != nil {
			return err
		}
	}
	return s.publishHeld()
}
