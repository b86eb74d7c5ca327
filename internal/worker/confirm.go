package worker

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// confirm takes the broker's answer to a publish.
func (s *session) confirm(ctx context.Context, p *publisher, c amqp.Confirmation, ok bool) error {
	if !ok {
		return closedError("publishing", p.closeReason())
	}
	m, returned, err := p.settle(c)
	switch {
	case err != nil:
		return err
	case !c.Ack:
		return s.nacked(ctx, p, m)
	case returned:
		return s.returned(ctx, m)
	default:
		return s.finish(m)
	}
}

// rescueConfirms is never ready as long as nothing was rescued.
func (s *session) rescueConfirms() <-chan amqp.Confirmation {
	if s.rescue == nil {
		return nil
	}
	return s.rescue.confirms
}

// confirmRescue is confirm for the default exchange. A worker may lack the permission to publish to
// it; the broker closes the channel then, and what was outstanding on it was not delivered.
func (s *session) confirmRescue(ctx context.Context, c amqp.Confirmation, ok bool) error {
	if ok {
		return s.confirm(ctx, s.rescue, c, ok)
	}
	err := closedError("publishing to the default exchange", s.rescue.closeReason())
	if !isAccessRefused(err) {
		return err
	}
	outstanding := s.rescue.outstanding
	s.rescue = nil
	for _, m := range outstanding {
		if err := s.returned(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// returned tries the next best after the broker had no queue for a message.
func (s *session) returned(ctx context.Context, m *message) error {
	next, ok := s.pipeline.Returned(m.verdict)
	if !ok {
		if m.holds == 0 {
			s.log.Warn("message held: the failed exchange has no queue, apply the configuration again",
				"exchange", s.pipeline.Names.FailedExchange(), "message_id", m.delivery.MessageId)
		}
		s.hold(m)
		return nil
	}
	m.verdict = next
	return s.publish(ctx, m)
}

// nacked tries again later what the broker refused to take.
func (s *session) nacked(ctx context.Context, p *publisher, m *message) error {
	before := m.verdict.Action
	if m.verdict = s.pipeline.Nacked(m.verdict); m.verdict.Action != before {
		return s.publish(ctx, m)
	}
	s.log.Debug("message held: the broker refused it", "queue", m.verdict.Letter.Queue, "message_id", m.delivery.MessageId)
	p.refused(time.Now())
	s.hold(m)
	return nil
}

// hold keeps a message, unacknowledged, to publish it again a little later.
func (s *session) hold(m *message) {
	now := time.Now()
	s.held.hold(m, now)
	s.heldTimer.Reset(s.held[0].heldUntil.Sub(now))
}

// publishHeld publishes the messages that were held for long enough.
func (s *session) publishHeld(ctx context.Context) error {
	if s.blocked {
		return nil
	}
	now := time.Now()
	for m := s.held.due(now); m != nil; m = s.held.due(now) {
		if err := s.publish(ctx, m); err != nil {
			return err
		}
	}
	if len(s.held) > 0 {
		s.heldTimer.Reset(s.held[0].heldUntil.Sub(now))
	}
	return nil
}

// block follows the broker's resource alarms, during which it takes no messages.
func (s *session) block(ctx context.Context, b amqp.Blocking, ok bool) error {
	if !ok {
		// The connection is closed: so are the publishers, and they know why.
		s.blockings = nil
		return nil
	}
	s.blocked = b.Active
	if b.Active {
		s.log.Warn("the broker takes no messages: waiting for its alarm to clear", "reason", b.Reason)
		return nil
	}
	s.log.Info("the broker takes messages again")
	s.unblockedAt = time.Now()
	return s.publishHeld(ctx)
}

// stalled is an error when the session has to be renewed.
func (s *session) stalled(now time.Time) error {
	if s.blocked {
		return nil
	}
	for _, p := range []*publisher{s.retry, s.failed, s.rescue} {
		if p == nil {
			continue
		}
		if err := p.stalled(now, s.unblockedAt); err != nil {
			return err
		}
	}
	return nil
}
