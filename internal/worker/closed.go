package worker

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// channelClosed decides what becomes of the messages whose channel the broker has closed. Neither an
// exchange that is missing or closed to this user nor a message that the broker does not accept may
// stop the rest, or end the session: the next one would only publish its messages again.
func (s *session) channelClosed(ctx context.Context, p *publisher) error {
	reason := p.closeReason()
	err := closedError("publishing", reason)
	if reason == nil || s.publishing.IsClosed() {
		return err
	}
	if err := s.settleTaken(p); err != nil {
		return err
	}
	switch {
	case reason.Code == amqp.PreconditionFailed:
		return s.isolate(ctx, p, reason)
	case reason.Code == amqp.AccessRefused && p == s.rescue:
		s.tell(p, "messages whose work queue has lost its binding are parked: this user may not write to amq.default, grant it the permission", reason)
		return s.forgoRescue(ctx)
	case reason.Code == amqp.AccessRefused:
		s.tell(p, "messages held: this user may not write to the exchange, grant it the permission", reason)
	case reason.Code == amqp.NotFound:
		s.tell(p, "messages held: the exchange is missing, apply the configuration again", reason)
	default:
		return err
	}
	p.suspend()
	s.reopen(ctx, p)
	return nil
}

// tell logs once what is wrong, until the publisher succeeds again.
func (s *session) tell(p *publisher, text string, reason *amqp.Error) {
	if !p.told {
		s.log.Warn(text, "exchange", p.exchange, "error", reason)
	}
	p.told = true
}

// isolate finds the message that the broker does not accept, which need not be the oldest one, by
// publishing each alone. That one is left to the broker.
func (s *session) isolate(ctx context.Context, p *publisher, reason *amqp.Error) error {
	if len(p.outstanding) == 1 && p.outstanding[0].publishTag != 0 {
		culprit := p.outstanding[0]
		p.outstanding = nil
		p.answered()
		if err := s.reject(culprit, reason); err != nil {
			return err
		}
	}
	p.suspend()
	s.reopen(ctx, p)
	return nil
}

// forgoRescue tries the next best for the messages that cannot be published to the default exchange.
func (s *session) forgoRescue(ctx context.Context) error {
	s.rescue.suspend()
	s.rescue.forbidden = true
	s.reopen(ctx, s.rescue)
	messages := s.rescue.waiting
	s.rescue.waiting, s.rescue.suspects = nil, 0
	for _, m := range messages {
		if err := s.returned(m); err != nil {
			return err
		}
	}
	return nil
}
