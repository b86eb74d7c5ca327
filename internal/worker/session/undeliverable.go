package session

import (
	"errors"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// Undeliverable reports whether the broker ended the session because it failed to deliver a message, as it does
// over some of those that were published over AMQP 1.0. Nothing says which message it was; it is among so many at the head
// of the inbox.
func (s *Session) Undeliverable() (ended bool, among int) {
	if !s.consuming.IsClosed() {
		return false, 0
	}
	select {
	case reason := <-s.consumingClosed: // or nil, if we have closed it
		ended = reason != nil && reason.Code == amqp.InternalError
	case <-time.After(time.Second): // the library is still about to close it
	}
	if ended {
		s.watch.Redelivered(s.inbox.unheard)
	}
	if s.inbox.widened {
		return ended, s.Prefetch
	}
	return ended, 1
}

// Searching reports whether the session ended while it was looking for a message that the broker does not accept: the next
// one would meet it in the middle of a window again.
func (s *Session) Searching() bool {
	for _, p := range s.publishers.all {
		if p.suspects > 0 {
			return true
		}
	}
	return false
}

// NotDelivered reports whether the broker ended the opening of a session in the same way, over the message at the
// head of the inbox, which it sent before it had answered.
func NotDelivered(err error) bool {
	var reason *amqp.Error
	return errors.As(err, &reason) && reason.Code == amqp.InternalError
}

// Finished is how many messages the session has finished.
func (s *Session) Finished() int { return s.inbox.finished }

const (
	// DefaultUnboundTimeout is how long messages are kept because no delay of the schedule is bound, before
	// they are parked. It is for a schedule that is applied a while after the worker's configuration, or before.
	DefaultUnboundTimeout = 10 * time.Minute
	// unboundProbe passes between two messages that try all delays meanwhile.
	unboundProbe = time.Second
)

// unbound follows whether any delay of the schedule is bound.
type unbound struct {
	timeout time.Duration
	log     *slog.Logger
	// since is when the first message found no delay bound, zero if the latest one found some.
	since time.Time
	// probe tries all delays, and the next one does after nextProbe: all others wait, instead of being sent
	// and returned again and again.
	probe     *message
	nextProbe time.Time
	parking   bool
}

// holds reports whether the message waits for a delay to be bound, without being published.
func (u *unbound) holds(m *message, v deadletter.Verdict, now time.Time) bool {
	if u.since.IsZero() || u.parking || m == u.probe || !v.Waits() {
		return false
	}
	if now.Before(u.nextProbe) {
		return true
	}
	u.probe, u.nextProbe = m, now.Add(unboundProbe)
	return false
}

// returned notes that a message found no delay bound, and reports whether it is kept, or else parked.
func (u *unbound) returned(m *message, now time.Time) bool {
	if u.since.IsZero() {
		u.since, u.nextProbe = now, now.Add(unboundProbe)
		u.log.Warn(deferredNoDelay, "for", u.timeout, "message_id", m.delivery.MessageId)
	}
	if m == u.probe {
		u.probe = nil
	}
	if now.Sub(u.since) < u.timeout {
		return true
	}
	if !u.parking {
		u.log.Error(parkedNoDelay, "after", u.timeout)
	}
	u.parking = true
	return false
}

// accepted notes that a delay is bound.
func (u *unbound) accepted(v deadletter.Verdict) {
	if u.since.IsZero() || !v.Waits() {
		return
	}
	u.reset()
	u.log.Info("a delay of the schedule is bound again")
}

// reset forgets what was found out about another schedule.
func (u *unbound) reset() { *u = unbound{timeout: u.timeout, log: u.log} }
