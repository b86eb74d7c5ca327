package session

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

const (
	// seenFor is how long the result of a look at the last exchange and its queue stays valid.
	seenFor = time.Second
	// bindingTime is how long the last queue can be back without its binding.
	bindingTime = 9 * time.Second
)

// rejections are messages that cannot be published again. The session leaves them to the broker, which moves the
// untouched original to the last queue. If that queue or its exchange is missing, a classic inbox drops the message. So
// the session looks for them first, without stopping the loop.
type rejections struct {
	// look returns an error if the last exchange or its queue is missing.
	look func(exchange, queue string) error
	// waiting are the messages that wait for a look.
	waiting []*message
	seenAt  time.Time
	missing bool
	backAt  time.Time // when the queue and the exchange were found again
}

// looked notes the result of a look.
func (r *rejections) looked(missing bool, now time.Time) {
	if r.missing && !missing {
		r.backAt = now
	}
	r.seenAt, r.missing = now, missing
}

// safe reports whether the last queue exists and has had time to get its binding.
func (r *rejections) safe(now time.Time) bool { return !r.missing && now.Sub(r.backAt) >= bindingTime }

// reject leaves a message to the broker, once the last queue is known to exist.
func (s *Session) reject(m *message, reason error) error {
	if m.unreadable {
		return s.replace(m, reason)
	}
	m.unpublishable = reason
	if time.Since(s.rejections.seenAt) < seenFor {
		return s.leaveOrKeep(m)
	}
	s.rejections.waiting = append(s.rejections.waiting, m)
	if len(s.rejections.waiting) > 1 {
		return nil // a look is under way
	}
	s.lookForLast()
	return nil
}

// lookForLast looks for the last exchange and its queue.
func (s *Session) lookForLast() {
	look := s.rejections.look
	exchange, queue := s.Flow.Config().Last()
	go func() {
		err := look(exchange, queue)
		s.complete(func() error { return s.looked(err) })
	}()
}

// replace publishes a copy of a message whose x-death the broker cannot read. Before RabbitMQ 3.13, a rejection would
// end the dead-lettering of the whole node. If the copy does not fit a frame, it loses all headers of the message.
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

// looked continues with the messages that waited for the look.
func (s *Session) looked(err error) error {
	if err != nil && !amqpconn.IsCode(err, amqp.NotFound) {
		if s.alarm.active && !s.publishing.IsClosed() { // the broker answers nothing
			s.lookForLast()
			return nil
		}
		return err
	}
	if err != nil && !s.rejections.missing {
		s.Log.Warn(deferredMissingLast, "error", err)
	}
	s.rejections.looked(err != nil, time.Now())
	waiting := s.rejections.waiting
	s.rejections.waiting = nil
	return each(waiting, s.leaveOrKeep)
}

func (s *Session) leaveOrKeep(m *message) error {
	last, _ := s.Flow.Config().Last()
	l := s.lanes.all[address{exchange: last}]
	if !s.rejections.safe(time.Now()) || s.lanes.shut[last] || l != nil && l.condition != available {
		s.keep(m)
		return nil
	}
	if err := s.inbox.reject(m.delivery); err != nil {
		return err
	}
	m.verdict.left(m)
	return nil
}
