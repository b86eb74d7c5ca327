package session

import (
	"slices"
	"time"
)

// backlog holds unacknowledged messages that could not be published. Each is tried again a little later, and the first
// one due comes first.
type backlog struct {
	messages []*message
	// timer fires when the first message is due.
	timer *time.Timer
}

// keep holds a message back for a time that doubles with each deferral.
func (b *backlog) keep(m *message, now time.Time) {
	if m.refused {
		m.dueAt = now.Add(backOff(m.deferrals))
	} else {
		m.dueAt = now.Add(pause(m.deferrals))
	}
	m.deferrals++
	at, _ := slices.BinarySearchFunc(b.messages, m, func(a, b *message) int { return a.dueAt.Compare(b.dueAt) })
	b.messages = slices.Insert(b.messages, at, m)
}

// next removes and returns the next message that is due. It returns nil if no message is due.
func (b *backlog) next(now time.Time) *message {
	if len(b.messages) == 0 || b.messages[0].dueAt.After(now) {
		return nil
	}
	return shift(&b.messages)
}

func (b *backlog) schedule(now time.Time) {
	if len(b.messages) > 0 {
		b.timer.Reset(b.messages[0].dueAt.Sub(now))
	}
}

// pause doubles with each attempt, from 100 ms to 2 s.
func pause(times int) time.Duration { return min(backOff(times), 2*time.Second) }

// backOff doubles with each attempt, from 100 ms to one minute.
func backOff(times int) time.Duration {
	return min(100*time.Millisecond<<min(times, 10), time.Minute)
}

// keep leaves a message unacknowledged, to publish it again a little later.
func (s *Session) keep(m *message) {
	s.inbox.slow = true
	now := time.Now()
	s.backlog.keep(m, now)
	s.backlog.schedule(now)
}

// publishBacklog publishes the messages that are due. During an alarm, it does nothing.
func (s *Session) publishBacklog() error {
	if s.alarm.active {
		return nil
	}
	now := time.Now()
	for m := s.backlog.next(now); m != nil; m = s.backlog.next(now) {
		s.rejudged(m)
		if err := s.publish(m); err != nil {
			return err
		}
	}
	s.backlog.schedule(now)
	return nil
}
