package worker

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/guard"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// unlessBlocked are the deliveries, or a channel that is never ready while the broker blocks
// publishers.
func (s *session) unlessBlocked(deliveries <-chan amqp.Delivery) <-chan amqp.Delivery {
	if s.blocked {
		return nil
	}
	return deliveries
}

// receive takes a delivery of a consumer of the inbox and publishes it to where it belongs.
func (s *session) receive(consumer *<-chan amqp.Delivery, d amqp.Delivery, ok bool) error {
	if !ok {
		*consumer = nil
		return s.deliveriesEnded()
	}
	s.inFlight++
	s.ramp.receivedAt = time.Now()
	m := &message{delivery: d, undecodable: guard.Undecodable(d.Headers)}
	s.arrived(m)
	m.verdict = s.judge(m)
	return s.publish(m)
}

// deliveriesEnded is an error unless this is what a draining session waits for.
func (s *session) deliveriesEnded() error {
	if err := s.inboxLost(); err != nil {
		return err
	}
	if s.draining {
		return nil
	}
	return fmt.Errorf("the broker cancelled the consumer of %s: the queue is gone, or its node is", s.pipeline.Names.Inbox())
}

// inboxLost is an error if the inbox's channel is closed: nothing can be acknowledged any more.
func (s *session) inboxLost() error {
	select {
	case reason := <-s.inboxClosed:
		return closedError("consuming", reason)
	default:
		return nil
	}
}

// publish sends a message to where its verdict says, as soon as that is possible.
func (s *session) publish(m *message) error {
	if m.undecodable != nil {
		return s.reject(m, m.undecodable)
	}
	p := s.publisherOf(m.verdict)
	if p == s.rescue && p.forbidden {
		return s.returned(m)
	}
	if !p.ready() || len(p.waiting) > 0 {
		p.waiting = append(p.waiting, m)
		return nil
	}
	return s.send(p, m)
}

// send publishes a message now.
func (s *session) send(p *publisher, m *message) error {
	now := time.Now()
	m.sent = s.detour(m.verdict, now)
	s.idCount++
	m.publishID = s.idPrefix + strconv.FormatUint(s.idCount, 36)
	publishing, err := s.build(m, deadletter.Stamp{
		Now:       now,
		PublishID: m.publishID,
		FrameMax:  s.publishing.Config.FrameSize,
	})
	if errors.As(err, &panicError{}) && m.verdict.Reason != deadletter.ReasonWorkerError {
		p.cleared()
		m.verdict.Action, m.verdict.Reason = deadletter.Fail, deadletter.ReasonWorkerError
		return s.publish(m)
	}
	if err != nil {
		p.cleared()
		return s.reject(m, err)
	}
	return p.publish(m, s.pipeline.Route(m.sent), publishing, now)
}

func (s *session) publisherOf(v deadletter.Verdict) *publisher {
	switch {
	case v.Action == deadletter.Fail:
		return s.failed
	case v.Action == deadletter.Rescue:
		return s.rescue
	case v.Delay == 0:
		return s.back
	default:
		return s.retry
	}
}

// finish acknowledges a message that the broker has taken.
func (s *session) finish(m *message) error {
	s.inFlight--
	if err := m.delivery.Ack(false); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	s.ramp.finished++
	s.taken(m.sent)
	s.done(m)
	return nil
}

// closedError says why a channel closed.
func closedError(what string, reason *amqp.Error) error {
	if reason == nil {
		return fmt.Errorf("the channel for %s closed: %w", what, amqp.ErrClosed)
	}
	return fmt.Errorf("the broker closed the channel for %s: %w", what, reason)
}
