package session

import (
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
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
