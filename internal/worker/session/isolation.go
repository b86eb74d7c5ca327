package session

import (
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// alone is the least size of a body that goes alone. By default, RabbitMQ 4.0 and later refuses larger bodies, and
	// a queue can hold some from before an upgrade.
	alone = 16 << 20
	// mostCautious bounds, in windows, how many messages go one at a time after the broker has refused one.
	mostCautious = 64
)

// slowDown sends messages one at a time for a while after the broker has refused one, longer each time. More messages
// of its kind can follow, and each would cause another publish of the others.
func (p *publisher) slowDown(window int) {
	p.cautious = min(max(window, 2*p.cautious), mostCautious*window)
	p.suspects = max(p.suspects, p.cautious)
}

// cleared notes the answer to a message that went alone, if one did.
func (p *publisher) cleared() { p.suspects = max(0, p.suspects-1) }

// goesAlone reports whether the broker can refuse the message for its size. Such a message is published while no other
// is outstanding.
func (m *message) goesAlone() bool { return len(m.delivery.Body) >= alone }

// isolate finds the message that the broker refuses, which need not be the oldest. It publishes each message alone, and
// leaves the refused one to the broker.
func (s *Session) isolate(p *publisher, reason *amqp.Error) error {
	if len(p.outstanding) == 1 && p.outstanding[0].publishTag != 0 {
		culprit := p.outstanding[0]
		p.outstanding = nil
		p.answered()
		p.slowDown(s.Prefetch)
		if err := s.reject(culprit, reason); err != nil {
			return err
		}
	}
	s.reopen(p)
	return nil
}
