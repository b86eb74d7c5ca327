package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// suspension is a closed channel: its publisher keeps what it cannot publish until the channel is open again. The others go on.
type suspension struct {
	// shut says that the channel is closed, and is being opened again.
	shut bool
	// forbidden says that it closed because the user is not allowed to publish to the exchange.
	forbidden bool
	// closures is how often in a row the broker closed the channel, and warned says that the log says that the
	// exchange is missing or forbidden.
	closures int
	warned   bool
	// stale says that the channel is to be opened again as soon as nothing is outstanding on it, and renewed when it last was.
	stale   bool
	renewed time.Time

	// waiting are the messages that are published next, in this order.
	waiting []*message
}

// suspend makes everything outstanding wait for the next channel.
func (p *publisher) suspend() {
	if p.suspects == 0 {
		p.suspects = len(p.outstanding)
	}
	p.waiting = append(p.outstanding, p.waiting...)
	p.shut, p.confirmChannel = true, confirmChannel{}
	p.outstanding, p.returned, p.nackedSince = nil, map[string]bool{}, time.Time{}
}

// resume continues with a new channel.
func (p *publisher) resume(o confirmChannel) {
	p.confirmChannel, p.shut, p.forbidden, p.stale = o, false, false, false
}

// next takes the message that waits longest.
func (s *suspension) next() *message {
	m := s.waiting[0]
	s.waiting[0] = nil // or the body would stay in memory
	s.waiting = s.waiting[1:]
	return m
}

// channelClosed decides what becomes of the messages whose channel the broker has closed. An exchange that is
// missing or closed to this user, or a message that the broker does not accept, must not stop the rest. Nor must it end the session:
// the next one would only publish its messages again.
func (s *Session) channelClosed(p *publisher) error {
	reason := p.closeReason()
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
	p.suspend()
	s.reopen(p)
	if s.Flow.shut(p.exchange, reason) {
		return s.forgo(p)
	}
	return s.aimWaiting()
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

// aimWaiting publishes again what waits for closed channels: it can go elsewhere by now.
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

// release publishes as much of what waits as can be published now.
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
