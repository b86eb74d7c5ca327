package session

import (
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// alone is how large a body is at least that goes alone: RabbitMQ from 4.0 on refuses larger ones by default, and
	// a queue can have some of earlier times.
	alone = 16 << 20
	// mostCautious is how many windows go one at a time at most after a message that the broker did not accept.
	mostCautious = 64
)

// isolation finds the message over which the broker closes a channel.
type isolation struct {
	// suspects is how many messages go one at a time, the outstanding one included: the others are then not published twice
	// without need.
	suspects int
	// cautious is how many went one at a time since the broker did not accept a message.
	cautious int
}

// slowDown has messages go one at a time for a while after one that the broker did not accept, longer each time: there can be
// more of its kind, and each would have the others published twice.
func (i *isolation) slowDown(window int) {
	i.cautious = min(max(window, 2*i.cautious), mostCautious*window)
	i.suspects = max(i.suspects, i.cautious)
}

// cleared notes that the message that went alone, if one did, was answered.
func (i *isolation) cleared() { i.suspects = max(0, i.suspects-1) }

// goesAlone reports whether the broker can refuse the message for its size: nothing else is under way then.
func (m *message) goesAlone() bool { return len(m.delivery.Body) >= alone }

// isolate finds the message that the broker does not accept, which need not be the oldest one, by
// publishing each alone. That one is left to the broker.
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
	p.suspend()
	s.reopen(p)
	return nil
}
