package session

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// bindingDeferrals is how often, in nine seconds, a publish is deferred when an exchange that was missing is
// back and has no binding for the message: whoever created it may be about to create the bindings.
const bindingDeferrals = 8

// confirm handles the broker's answer to a publish.
func (s *Session) confirm(ctx context.Context, p *publisher, c amqp.Confirmation, ok bool) error {
	if !ok {
		return s.channelClosed(ctx, p)
	}
	warned := p.warned
	m, returned, err := p.settle(c)
	if warned && !p.warned {
		s.Log.Info("the exchange is available again", "exchange", p.exchange)
	}
	switch {
	case err != nil:
		return err
	case !m.accepted():
		err = s.nacked(p, m)
	case returned && p.warned && p != s.directPublisher && m.deferrals < bindingDeferrals: // the default exchange has no bindings to wait for
		s.keep(m)
	case returned:
		err = s.returned(m)
	default:
		err = s.finish(m)
	}
	if err != nil {
		return err
	}
	s.renew(ctx, p)
	return s.release(p)
}

// returned tries the next best after the broker had no queue for a message.
func (s *Session) returned(m *message) error {
	if m.verdict.Action == deadletter.Retry && m.sent.Delay != m.verdict.Delay {
		s.keep(m) // its own delay may be bound, and accept it again
		return nil
	}
	next, ok := s.Pipeline.Returned(m.verdict)
	if !ok {
		if !s.failedPublisher.unbound {
			s.Log.Warn(deferredUnbound,
				"exchange", s.Pipeline.Names.FailedExchange(), "message_id", m.delivery.MessageId)
		}
		s.failedPublisher.unbound = true
		s.keep(m)
		return nil
	}
	if m.verdict.Waits() && !next.Waits() && s.unbound.returned(m, time.Now()) {
		m.verdict = s.judge(m)
		s.keep(m)
		return nil
	}
	m.verdict = next
	return s.publish(m)
}

// nacked tries again later what the broker refused to accept.
func (s *Session) nacked(p *publisher, m *message) error {
	if next, ok := s.Pipeline.Nacked(m.verdict); ok {
		m.verdict = next
		return s.publish(m)
	}
	if m.verdict.ToOwnFailedQueue() {
		return s.parkedNacked(m, time.Now())
	}
	s.Log.Debug(deferredRefused, "queue", m.verdict.Letter.Queue, "message_id", m.delivery.MessageId)
	if !m.verdict.ToWorkQueue() {
		// A work queue may well be full. Only a fault refuses what goes to a queue of ours.
		now := time.Now()
		p.refused(now)
		s.detours.refused(m.sent, now)
	}
	s.keep(m)
	return nil
}
