package worker

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// bindingHolds is how often, in nine seconds, a message is held when an exchange that was missing is
// back and has no binding for it: the one who made the exchange may be about to make the bindings.
const bindingHolds = 8

// confirm takes the broker's answer to a publish.
func (s *session) confirm(ctx context.Context, p *publisher, c amqp.Confirmation, ok bool) error {
	if !ok {
		return s.channelClosed(ctx, p)
	}
	told := p.told
	m, returned, err := p.settle(c)
	if told && !p.told {
		s.log.Info("the exchange is there again", "exchange", p.exchange)
	}
	switch {
	case err != nil:
		return err
	case !m.taken():
		err = s.nacked(p, m)
	case returned && p.told && p != s.rescue && m.holds < bindingHolds: // the default exchange has no bindings to wait for
		s.hold(m)
	case returned:
		err = s.returned(m)
	default:
		err = s.finish(m)
	}
	if err != nil {
		return err
	}
	return s.release(p)
}

// returned tries the next best after the broker had no queue for a message.
func (s *session) returned(m *message) error {
	if m.verdict.Action == deadletter.Retry && m.sent.Delay != m.verdict.Delay {
		s.hold(m) // its own delay may be bound, and take it again
		return nil
	}
	next, ok := s.pipeline.Returned(m.verdict)
	if !ok {
		if !s.failed.unbound {
			s.log.Warn("message held: the failed exchange has no queue, apply the configuration again",
				"exchange", s.pipeline.Names.FailedExchange(), "message_id", m.delivery.MessageId)
		}
		s.failed.unbound = true
		s.hold(m)
		return nil
	}
	m.verdict = next
	return s.publish(m)
}

// nacked tries again later what the broker refused to take.
func (s *session) nacked(p *publisher, m *message) error {
	if next, ok := s.pipeline.Nacked(m.verdict); ok {
		m.verdict = next
		return s.publish(m)
	}
	s.log.Debug("message held: the broker refused it", "queue", m.verdict.Letter.Queue, "message_id", m.delivery.MessageId)
	if !m.verdict.ToWorkQueue() {
		// A work queue may well be full. Nothing but a fault refuses what goes to a queue of ours.
		now := time.Now()
		p.refused(now)
		s.refused(m.sent, now)
	}
	s.hold(m)
	return nil
}
