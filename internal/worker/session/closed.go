package session

import (
	amqp "github.com/rabbitmq/amqp091-go"
)

// channelClosed decides what becomes of the messages whose channel the broker has closed. Neither an
// exchange that is missing or closed to this user nor a message that the broker does not accept may
// stop the rest, or end the session: the next one would only publish its messages again.
func (s *Session) channelClosed(p *publisher) error {
	reason := p.closeReason()
	err := closedError("publishing", reason)
	if reason == nil || s.publishing.IsClosed() {
		return err
	}
	if err := s.settleAccepted(p); err != nil {
		return err
	}
	switch {
	case reason.Code == amqp.PreconditionFailed:
		return s.isolate(p, reason)
	case reason.Code == amqp.AccessRefused && p.exchange == "":
		s.warnOnce(p, parkedForbidden, reason)
		p.forbidden = true
	case reason.Code == amqp.AccessRefused:
		s.warnOnce(p, deferredForbidden, reason)
	case reason.Code == amqp.NotFound:
		s.warnOnce(p, deferredMissing, reason)
	default:
		return err
	}
	p.suspend()
	s.reopen(p)
	if s.Flow.shut(p.exchange, reason) {
		return s.forgo(p)
	}
	return s.aimWaiting()
}

// warnOnce logs once what is wrong, until the publisher succeeds again.
func (s *Session) warnOnce(p *publisher, text string, reason *amqp.Error) {
	if !p.warned {
		s.Log.Warn(text, "exchange", p.exchange, "error", reason)
	}
	p.warned = true
}

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

// forgo tries the next best for the messages that cannot be published to an exchange.
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

// aimWaiting publishes what waits for closed channels to where it goes now, which can be elsewhere.
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

// reopen opens the channel again after a moment.
func (s *Session) reopen(p *publisher) {
	s.openSoon(p, pause(p.closures))
	p.closures++
}

// release publishes as much of what waits as may be published now.
func (s *Session) release(p *publisher) error {
	for len(p.waiting) > 0 && p.ready(p.waiting[0]) && !s.alarm.active {
		if err := s.sendNext(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) sendNext(p *publisher) error {
	m := p.next()
	if s.rejudged(m) || s.to(m.route) != p {
		p.cleared()
		return s.publish(m)
	}
	return s.send(p, m)
}
