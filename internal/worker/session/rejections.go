package session

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// seenFor is how long the last exchange and queue count as there after they were.
	seenFor = time.Second
	// bindingTime is how long they can be there again without a binding.
	bindingTime = 9 * time.Second
)

// rejections are messages that cannot be published again, so that they are left to the broker, which
// moves the untouched original to the last queue. If that, or its exchange, is missing, a classic inbox
// drops the message instead: so the session looks before, without stopping the loop.
type rejections struct {
	// look is an error if the last exchange or its queue is missing.
	look func(exchange, queue string) error
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

// safe reports whether the last queue is there, and has had the time to be bound.
func (r *rejections) safe(now time.Time) bool { return !r.missing && now.Sub(r.backAt) >= bindingTime }

// reject leaves a message to the broker, as soon as the last queue is known to be there.
func (s *Session) reject(m *message, reason error) error {
	if m.unreadable {
		return s.replace(m, reason)
	}
	if time.Since(s.rejections.seenAt) < seenFor {
		return s.leaveOrKeep(rejection{m, reason})
	}
	s.rejections.waiting = append(s.rejections.waiting, rejection{m, reason})
	if len(s.rejections.waiting) > 1 {
		return nil // a look is under way
	}
	look := s.rejections.look
	exchange, queue := s.Flow.Config().Last()
	go func() {
		err := look(exchange, queue)
		s.complete(func() error { return s.looked(err) })
	}()
	return nil
}

// replace publishes a copy in the place of a message with an x-death that the broker could not read: before RabbitMQ 3.13,
// the dead-lettering of the whole node would end over it. A copy that does not fit a frame has no headers of the message's.
func (s *Session) replace(m *message, reason error) error {
	switch {
	case m.undecodable == nil && m.replaced == nil:
		m.replaced = fmt.Errorf("x-death left out: %w", reason)
	case m.delivery.Headers != nil:
		m.replaced, m.undecodable, m.delivery.Headers = fmt.Errorf("all headers left out: %w", reason), nil, nil
	default:
		s.keep(m)
		return nil
	}
	m.verdict = s.judge(m)
	return s.publish(m)
}

// looked resumes what had to wait for the look.
func (s *Session) looked(err error) error {
	var answer *amqp.Error
	if err != nil && (!errors.As(err, &answer) || answer.Code != amqp.NotFound) {
		return err
	}
	if err != nil && !s.rejections.missing {
		s.Log.Warn(deferredMissingLast, "error", err)
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
	last, _ := s.Flow.Config().Last()
	if p := s.publishers.all[last]; !s.rejections.safe(time.Now()) || p != nil && p.impeded() {
		s.keep(r.message)
		return nil
	}
	if err := s.inbox.reject(r.delivery); err != nil {
		return err
	}
	r.verdict.left(r.message, r.reason)
	return nil
}
