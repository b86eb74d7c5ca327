package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// alarm follows the broker's resource alarms. While one is active, the broker accepts no messages.
type alarm struct {
	notices chan amqp.Blocking
	active  bool
	// clearedAt is when the last alarm cleared. It is zero if there was no alarm.
	clearedAt time.Time
}

// waited returns the time since then, but counts only from the moment when the broker's last alarm cleared.
func (a alarm) waited(then, now time.Time) time.Duration {
	if then.Before(a.clearedAt) {
		then = a.clearedAt
	}
	return now.Sub(then)
}

// alarmChanged notes the start of an alarm. When the alarm clears, it resumes the work.
func (s *Session) alarmChanged(b amqp.Blocking, ok bool) error {
	if !ok {
		return closedError("publishing", <-s.publishingClosed)
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
	for _, l := range s.lanes.all {
		s.renew(l)
		if err := s.release(l); err != nil {
			return err
		}
	}
	return s.publishBacklog()
}
