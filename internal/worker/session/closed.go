package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// channelClosed decides what happens to the messages of a channel that the broker has closed. A missing or forbidden
// exchange, or a message that the broker refuses, must not stop the other messages. It must not end the session either:
// the next session would only publish its messages again.
func (s *Session) channelClosed(p *publisher) error {
	reason := <-p.Closed // was sent before confirms was closed
	err := closedError("publishing", reason)
	if reason == nil || s.publishing.IsClosed() {
		return err
	}
	if err := s.settleAccepted(p); err != nil {
		return err
	}
	text := deferredMissing
	switch {
	case reason.Code == amqp.PreconditionFailed:
		return s.isolate(p, reason)
	case reason.Code == amqp.AccessRefused && p.exchange == "":
		text, p.forbidden = parkedForbidden, true
	case reason.Code == amqp.AccessRefused:
		text = deferredForbidden
	case reason.Code != amqp.NotFound:
		return err
	}
	if !p.warned {
		s.Log.Warn(text, "exchange", p.exchange, "error", reason)
	}
	p.warned = true
	s.reopen(p)
	if s.Flow.shut(p.exchange, reason) {
		return s.forgo(p)
	}
	return s.aimWaiting()
}

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

// forgo sends the messages that cannot be published to an exchange on their next best way.
func (s *Session) forgo(p *publisher) error {
	waiting := p.waiting
	p.waiting, p.suspects = nil, 0
	for _, m := range waiting {
		if err := s.proceed(p, m, m.verdict.returned(m)); err != nil {
			return err
		}
	}
	return nil
}

// aimWaiting publishes the messages that wait for closed channels again, since their route can differ by now.
func (s *Session) aimWaiting() error {
	for _, p := range s.publishers.all {
		if !p.shut || s.alarm.active {
			continue
		}
		waiting := p.waiting
		p.waiting = nil
		for _, m := range waiting {
			if err := s.publish(m); err != nil {
				return err
			}
		}
		p.suspects = max(0, p.suspects-len(waiting)+len(p.waiting))
	}
	return nil
}

// reopen makes all outstanding messages wait for another channel, which it opens after a pause.
func (s *Session) reopen(p *publisher) {
	if p.suspects == 0 {
		p.suspects = len(p.outstanding)
	}
	p.waiting = append(p.outstanding, p.waiting...)
	p.shut, p.confirmChannel = true, confirmChannel{}
	p.outstanding, p.returned, p.nackedSince = nil, map[string]bool{}, time.Time{}
	s.openSoon(p, pause(p.closures))
	p.closures++
}

// release publishes the waiting messages for as long as the publisher is ready for them.
func (s *Session) release(p *publisher) error {
	for len(p.waiting) > 0 && p.ready(p.waiting[0]) && !s.alarm.active {
		m := shift(&p.waiting)
		var err error
		if s.rejudged(m) || s.to(m.route) != p {
			p.cleared()
			err = s.publish(m)
		} else {
			err = s.send(p, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
