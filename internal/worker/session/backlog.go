package session

import (
	"slices"
	"time"
)

// backlog is the unacknowledged backlog: messages whose publish did not succeed and is tried again a
// little later, the next one first.
type backlog struct {
	messages []*message
	// timer fires when the first of them is due.
	timer *time.Timer
}

// keep takes a message for a moment that doubles each time.
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

// next takes the next message that is due, nil if there is none.
func (b *backlog) next(now time.Time) *message {
	if len(b.messages) == 0 || b.messages[0].dueAt.After(now) {
		return nil
	}
	m := b.messages[0]
	b.messages = slices.Delete(b.messages, 0, 1)
	return m
}

// schedule sets the timer.
func (b *backlog) schedule(now time.Time) {
	if len(b.messages) > 0 {
		b.timer.Reset(b.messages[0].dueAt.Sub(now))
	}
}

// pause is a moment that doubles each time, from 100 ms to 2 s.
func pause(times int) time.Duration { return min(backOff(times), 2*time.Second) }

// backOff is one that goes on doubling, up to a minute.
func backOff(times int) time.Duration {
	return min(100*time.Millisecond<<min(times, 10), time.Minute)
}

// keep keeps a message, unacknowledged, to publish it again a little later.
func (s *Session) keep(m *message) {
	s.inbox.slow = true
	now := time.Now()
	s.backlog.keep(m, now)
	s.backlog.schedule(now)
}

// publishBacklog publishes the messages that are due.
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
