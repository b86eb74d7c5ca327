package session

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const (
	// seenFor is how long the failed exchange and queue count as there after they were.
	seenFor = time.Second
	// bindingTime is for whoever creates them again to bind them.
	bindingTime = 9 * time.Second
)

// rejections are messages that cannot be published again, so that they are left to the broker, which
// moves the untouched original to the failed queue. If that, or its exchange, is missing, a classic inbox
// drops the message instead: so the session looks before, without stopping the loop.
type rejections struct {
	// look is an error if the failed exchange or its queue is missing.
	look func(pipeline.Names) error
	// waiting are those that wait for a look.
	waiting []rejection
	seenAt  time.Time
	missing bool
	backAt  time.Time // they were missing before
}

// rejection is a message that cannot be published again, and why.
type rejection struct {
	*message
	reason error
}

// looked notes what a look has found.
func (r *rejections) looked(missing bool, now time.Time) {
	if r.missing && !missing {
		r.backAt = now
	}
	r.seenAt, r.missing = now, missing
}

// safe reports whether the failed queue is there, and has had the time to be bound.
func (r *rejections) safe(now time.Time) bool { return !r.missing && now.Sub(r.backAt) >= bindingTime }

// reject leaves a message to the broker, as soon as the failed queue is known to be there.
func (s *Session) reject(m *message, reason error) error {
	if time.Since(s.rejections.seenAt) < seenFor {
		return s.leaveOrKeep(rejection{m, reason})
	}
	s.rejections.waiting = append(s.rejections.waiting, rejection{m, reason})
	if len(s.rejections.waiting) > 1 {
		return nil // somebody looks already
	}
	look, names := s.rejections.look, s.Pipeline.Names
	go func() {
		err := look(names)
		s.completions <- func() error { return s.looked(err) }
	}()
	return nil
}

// looked resumes what had to wait for the look.
func (s *Session) looked(err error) error {
	var answer *amqp.Error
	if err != nil && (!errors.As(err, &answer) || answer.Code != amqp.NotFound) {
		return err
	}
	if err != nil && !s.rejections.missing {
		s.Log.Warn(deferredMissingFailed, "error", err)
	}
	s.rejections.looked(err != nil, time.Now())
	waiting := s.rejections.waiting
	s.rejections.waiting = nil
	for _, r := range waiting {
		if err := s.leaveOrKeep(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) leaveOrKeep(r rejection) error {
	if !s.rejections.safe(time.Now()) || s.failedPublisher.warned || s.failedPublisher.unbound {
		s.keep(r.message)
		return nil
	}
	if err := s.intake.reject(r.delivery); err != nil {
		return err
	}
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
