package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const (
	// seenFor is how long the failed exchange and queue count as there after they were.
	seenFor = time.Second
	// bindingTime is for whoever makes them anew to bind them.
	bindingTime = 9 * time.Second
)

// rejection is a message that cannot be published again, and why.
type rejection struct {
	*message
	reason error
}

// failedLook is what the worker knows of the failed exchange and its queue.
type failedLook struct {
	seenAt  time.Time
	missing bool
	backAt  time.Time // they were missing before
}

// reject leaves a message that cannot be published again to the broker, which moves the untouched
// original to the failed queue. If that, or its exchange, is missing, a classic inbox drops the message
// instead: so the worker looks before, without stopping the loop.
func (s *session) reject(m *message, reason error) error {
	if time.Since(s.look.seenAt) < seenFor {
		return s.leaveOrHold(rejection{m, reason})
	}
	s.rejections = append(s.rejections, rejection{m, reason})
	if len(s.rejections) > 1 {
		return nil // somebody looks already
	}
	names := s.pipeline.Names
	go func() {
		err := s.lookForFailed(names)
		s.completions <- func() error { return s.looked(err) }
	}()
	return nil
}

// looked goes on with what had to wait for the look.
func (s *session) looked(err error) error {
	var answer *amqp.Error
	if err != nil && (!errors.As(err, &answer) || answer.Code != amqp.NotFound) {
		return err
	}
	now := time.Now()
	switch missed := s.look.missing; {
	case err != nil && !missed:
		s.log.Warn("messages held: the failed exchange or its queue is missing, apply the configuration again", "error", err)
	case err == nil && missed:
		s.look.backAt = now
	}
	s.look.seenAt, s.look.missing = now, err != nil
	rejections := s.rejections
	s.rejections = nil
	for _, r := range rejections {
		if err := s.leaveOrHold(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) leaveOrHold(r rejection) error {
	if s.look.missing || time.Since(s.look.backAt) < bindingTime || s.failed.told || s.failed.unbound {
		s.hold(r.message)
		return nil
	}
	return s.leave(r)
}

func (s *session) leave(r rejection) error {
	s.inFlight--
	if err := r.delivery.Reject(false); err != nil {
		return fmt.Errorf("reject: %w", err)
	}
	s.ramp.finished++
	s.leftToBroker(r.message, r.reason)
	return nil
}

// lookForFailed is an error if the failed exchange or its queue is missing.
func lookForFailed(ctx context.Context, conn *amqp.Connection, names pipeline.Names) error {
	channel, err := amqpconn.OpenChannel(ctx, conn)
	if err != nil {
		return err
	}
	defer func() { _ = channel.Close() }() // the broker closes it over what is missing
	_, err = amqpconn.Await(ctx, "look for the failed queue", func() (any, error) {
		if err := channel.ExchangeDeclarePassive(names.FailedExchange(), amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
			return nil, err
		}
		_, err := channel.QueueDeclarePassive(names.FailedQueue(), true, false, false, false, nil)
		return nil, err
	}, func(any) {})
	return err
}
