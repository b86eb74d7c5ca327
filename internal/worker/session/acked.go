package session

import (
	"context"
	"errors"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

const (
	// ackPatience is how long a session that stops waits for acknowledgements that are on their way still.
	ackPatience = 5 * time.Second
	// ackPoll is how often it asks for them meanwhile.
	ackPoll = 50 * time.Millisecond
	// countPatience is how long a session that stops waits for the count of the inbox's consumers.
	countPatience = time.Second
)

var errAcksLate = errors.New("the inbox counts more consumers than before")

// acks knows whether the inbox has all acknowledgements of a session that stops. AMQP does not confirm them, but a quorum queue
// counts a consumer that has ended until everything that was delivered to it is acknowledged. A classic queue does not, and drops
// none.
type acks struct {
	// others gets how many consumers are not the session's, before those end; nothing if that is unknown.
	others chan int
	// count asks how many consumers there are. It gives up at that time.
	count func(until time.Time) (int, error)
}

// cancel ends the consumers.
func (s *Session) cancel() {
	channel, tags, own := s.intake.channel, s.intake.tags(), s.intake.consumers()
	go func() {
		if n, err := s.acks.count(time.Now().Add(countPatience)); err == nil {
			s.acks.others <- max(0, n-own)
		}
		cancelAll(channel, tags)
	}()
}

// awaitAcks waits until the inbox has the acknowledgements of all that was delivered.
func (s *Session) awaitAcks() {
	time.Sleep(ackGrace)
	if s.intake.inFlight > 0 || !s.intake.cancelled() {
		return // those consumers stay
	}
	others := 0
	select {
	case others = <-s.acks.others:
	default:
	}
	if err := s.acks.await(others, earlier(time.Now().Add(ackPatience), s.drainedBy)); err != nil {
		s.Log.Info("nobody knows whether the inbox has the last acknowledgements: their messages may be delivered again", "reason", err)
	}
}

// await waits until there are no consumers but others.
func (a acks) await(others int, until time.Time) error {
	for {
		n, err := a.count(until)
		switch {
		case err != nil, n <= others:
			return err
		case time.Now().After(until):
			return errAcksLate
		}
		time.Sleep(ackPoll)
	}
}

// countConsumers asks on the connection that consumes: a broker that blocks publishers does not answer on the other one.
func countConsumers(ctx context.Context, conn amqpconn.Bounded, queue string, until time.Time) (int, error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	channel, err := amqpconn.OpenChannel(ctx, conn.Connection)
	if err != nil {
		return 0, err
	}
	return amqpconn.Await(ctx, "count the consumers of "+queue, func() (int, error) {
		defer func() { _ = channel.Close() }()
		declared, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
		return declared.Consumers, err
	}, func(int) {})
}
