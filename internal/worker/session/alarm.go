package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// alarm follows the broker's resource alarms, during which it accepts no messages.
type alarm struct {
	notices chan amqp.Blocking
	active  bool
	// clearedAt is when the last one cleared, zero if there was none.
	clearedAt time.Time
}

// waited is how long ago something was, without the time until the broker's last alarm cleared.
func (a alarm) waited(then, now time.Time) time.Duration {
	if then.Before(a.clearedAt) {
		then = a.clearedAt
	}
	return now.Sub(then)
}

// unlessBlocked are the deliveries, or a channel that is never ready during an alarm.
func (a alarm) unlessBlocked(deliveries <-chan amqp.Delivery) <-chan amqp.Delivery {
	if a.active {
		return nil
	}
	return deliveries
}

// alarmChanged resumes what an alarm has stopped, once it clears.
func (s *Session) alarmChanged(b amqp.Blocking, ok bool) error {
	if !ok {
		// The connection is closed: so are the publishers, and they know why.
		s.alarm.notices = nil
		return nil
	}
	s.alarm.active = b.Active
	if b.Active {
		s.Log.Warn("the broker accepts no messages: waiting for its alarm to clear", "reason", b.Reason)
		return nil
	}
	s.Log.Info("the broker accepts messages again")
	if err := s.inbox.lost(); err != nil {
		return err
	}
	s.alarm.clearedAt = time.Now()
	for _, p := range s.publishers.all {
		if err := s.release(p); err != nil {
			return err
		}
	}
	return s.publishBacklog()
}
