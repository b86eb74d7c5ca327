package session

import (
	"errors"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

// DefaultAckPatience is how long a session that stops waits for acknowledgements that are on their way still.
const DefaultAckPatience = 5 * time.Second

var errAcksLate = errors.New("the inbox counts more consumers than before: acknowledgements are late, or another worker has just come")

// acks knows whether the inbox has all acknowledgements of a session that stops.
type acks struct {
	// count asks how many consumers there are.
	count func() (int, error)
	// arrived gets the outcome of [amqpconn.AwaitAcks].
	arrived chan error
}

// cancel ends the consumers.
func (s *Session) cancel() {
	channel, tags, own := s.intake.channel, s.intake.tags(), s.intake.consumers()
	go func() {
		s.acks.arrived <- amqpconn.AwaitAcks(own, s.acks.count, func() { cancelAll(channel, tags) })
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
