package session

import (
	"errors"
	"time"
)

const (
	// DefaultAckPatience is how long a session that stops waits for acknowledgements that are on their way still.
	DefaultAckPatience = 5 * time.Second
	// ackPoll is how often it asks for them meanwhile.
	ackPoll = 50 * time.Millisecond
	// countPatience is how long it waits for the count of the inbox's consumers before it ends its own.
	countPatience = time.Second
)

var errAcksLate = errors.New("the inbox counts more consumers than before: acknowledgements are late, or another worker has just come")

// acks knows whether the inbox has all acknowledgements of a session that stops. AMQP does not confirm them, but a quorum queue
// counts a consumer that has ended until everything that was delivered to it is acknowledged. A classic queue does not, and drops
// none.
type acks struct {
	// count asks how many consumers there are.
	count func() (int, error)
	// arrived gets the outcome of [acks.follow].
	arrived chan error
}

// cancel ends the consumers.
func (s *Session) cancel() {
	channel, tags, own := s.intake.channel, s.intake.tags(), s.intake.consumers()
	go func() {
		s.acks.arrived <- s.acks.follow(own, func() { cancelAll(channel, tags) })
	}()
}

// awaitAcks waits until the inbox has the acknowledgements of all that was delivered.
func (s *Session) awaitAcks() {
	time.Sleep(ackGrace)
	if s.intake.inFlight > 0 || !s.intake.cancelled() {
		return // those consumers stay
	}
	err := errAcksLate
	select {
	case err = <-s.acks.arrived:
	case <-time.After(time.Until(earlier(time.Now().Add(s.AckPatience), s.drainedBy))):
	}
	if err != nil {
		s.Log.Info("the inbox may not have the last acknowledgements: their messages may be delivered again", "reason", err)
	}
}

// follow ends the session's own consumers and counts until they are gone. Only those of others can make the count rise.
func (a acks) follow(own int, cancel func()) error {
	unanswered := time.AfterFunc(countPatience, cancel)
	last, err := a.count()
	if unanswered.Stop() {
		go cancel()
	}
	others := last - own
	for n := last; err == nil && n > max(0, others); n, err = a.count() {
		others += max(0, n-last)
		last = n
		time.Sleep(ackPoll)
	}
	return err
}
