package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// channelClosed decides what happens to the messages of a channel that the broker has closed. A missing or forbidden
// exchange, or a message that the broker refuses, must not stop the other messages. It must not end the session either:
// the next session would only publish its messages again.
func (s *Session) channelClosed(l *lane) error {
	reason := <-l.Closed // was sent before confirms was closed
	err := closedError("publishing", reason)
	if reason == nil || s.publishing.IsClosed() {
		return err
	}
	l.channelState = opening
	if err := s.settleAccepted(l); err != nil {
		return err
	}
	switch reason.Code {
	case amqp.PreconditionFailed:
		return s.isolate(l, reason)
	case amqp.AccessRefused, amqp.NotFound:
		return s.exchangeShut(l, reason)
	}
	return err
}

// exchangeShut keeps the messages to an exchange that is missing or forbidden, unless they have another way.
func (s *Session) exchangeShut(l *lane, reason *amqp.Error) error {
	text := deferredMissing
	switch {
	case reason.Code == amqp.AccessRefused && l.exchange == "":
		text = parkedForbidden
	case reason.Code == amqp.AccessRefused:
		text = deferredForbidden
	}
	if !s.lanes.shut[l.exchange] {
		s.Log.Warn(text, "exchange", l.exchange, "error", reason)
	}
	s.lanes.shut[l.exchange] = true
	s.reopen(l)
	if !s.Flow.shut(l.exchange, reason) {
		return s.aimWaiting()
	}
	if l.exchange == "" {
		l.channelState = forbidden
	}
	return s.forgo(l)
}

// isolate finds the message that the broker refuses, which need not be the oldest. It publishes each message alone, and
// leaves the refused one to the broker.
func (s *Session) isolate(l *lane, reason *amqp.Error) error {
	if len(l.outstanding) == 1 && l.outstanding[0].sent.tag != 0 && l.silence.tag == 0 {
		culprit := l.outstanding[0]
		l.outstanding = nil
		s.judged(l, culprit)
		l.isolation.answered()
		l.isolation.found(s.Prefetch)
		if err := s.reject(culprit, reason); err != nil {
			return err
		}
	}
	s.reopen(l)
	return nil
}

// forgo sends the messages that cannot be published to an exchange on their next best way.
func (s *Session) forgo(l *lane) error {
	waiting := l.waiting
	l.waiting, l.isolation.left = nil, 0
	return each(waiting, func(m *message) error { return s.proceed(l, m, m.verdict.returned(m)) })
}

// aimWaiting publishes the messages that wait for closed channels again, since their route can differ by now.
func (s *Session) aimWaiting() error {
	if s.alarm.active {
		return nil
	}
	for _, l := range s.lanes.all {
		if !l.closed() {
			continue
		}
		waiting := l.waiting
		l.waiting = nil
		if err := each(waiting, s.publish); err != nil {
			return err
		}
		l.isolation.left = max(0, l.isolation.left-len(waiting)+len(l.waiting))
	}
	return nil
}

// reopen makes all outstanding messages wait for another channel, which it opens after a pause.
func (s *Session) reopen(l *lane) {
	if l.isolation.left == 0 {
		l.isolation.left = len(l.outstanding)
	}
	l.waiting = append(l.outstanding, l.waiting...)
	l.channelState, l.confirmChannel = opening, confirmChannel{}
	l.outstanding, l.silence.tag = nil, 0
	s.openAgain(l)
}

// release publishes the waiting messages for as long as the lane is ready for them.
func (s *Session) release(l *lane) error {
	for len(l.waiting) > 0 && l.ready(l.waiting[0], time.Now()) && !s.alarm.active {
		m := shift(&l.waiting)
		var err error
		if s.rejudged(m) {
			l.isolation.answered()
			err = s.publish(m)
		} else {
			err = s.send(l, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
