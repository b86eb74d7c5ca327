package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Undeliverable reports whether the broker ended the session because it failed to deliver a message. That happens with
// some messages that were published over AMQP 1.0. The broker does not say which message it was. It is one of the first
// messages of the inbox, and among is how many.
func (s *Session) Undeliverable() (ended bool, among int) {
	if !s.consuming.IsClosed() {
		return false, 0
	}
	select {
	case reason := <-s.consumingClosed: // nil if we have closed the connection
		ended = reason != nil && reason.Code == amqp.InternalError
	case <-time.After(time.Second): // the library has yet to close the channel
	}
	if ended {
		s.watch.Redelivered(s.inbox.unheard)
	}
	if s.inbox.widened() {
		return ended, s.Prefetch
	}
	return ended, 1
}

// Searching reports whether the session ended during the search for a message that the broker refuses. The next session
// would otherwise meet that message in the middle of a window again.
func (s *Session) Searching() bool {
	for _, l := range s.lanes.all {
		if l.isolation.left > 0 {
			return true
		}
	}
	return false
}

// Finished is how many messages the session has finished.
func (s *Session) Finished() int { return s.inbox.finished }
