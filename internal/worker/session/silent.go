package session

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// silentAfter is how much longer than a later message one can wait for the broker's answer. After that, it counts as refused.
	silentAfter = 5 * time.Second
	// silentAgain replaces silentAfter for targets that have not answered, since waiting messages fill the window.
	silentAgain = 250 * time.Millisecond
	// mostUnheard is how many messages go to a channel after an unanswered one. After 32 messages for a quorum queue that does not
	// answer, the broker gives the channel no more credit. After 200 more, it stops reading from the connection.
	mostUnheard = 128
)

// Patience says how long a message waits for the broker's answer. It is short while a queue does not answer. It outlives a session.
type Patience struct{ gaveUpAt time.Time }

// At is the patience at this time.
func (p *Patience) At(now time.Time) time.Duration {
	if now.Sub(p.gaveUpAt) < refusalsOver {
		return silentAgain
	}
	return silentAfter
}

// GiveUp notes that a message was given up.
func (p *Patience) GiveUp(now time.Time) { p.gaveUpAt = now }

// silence is what a lane knows of answers that do not come.
type silence struct {
	// tag is the delivery tag of the first message on the channel that was given up. It is 0 if there is none.
	tag uint64
	// gaveUpAt and heardAt are when a message was given up last, and when the target accepted one.
	gaveUpAt, heardAt time.Time
}

// gaveUp notes that a message was given up.
func (s *silence) gaveUp(tag uint64, now time.Time) {
	s.gaveUpAt = now
	if s.tag == 0 {
		s.tag = tag
	}
}

// late learns of an answer to a message that was given up. If the target has accepted the first of them, it was only slow.
func (s *silence) late(c amqp.Confirmation, now time.Time) {
	if c.Ack && c.DeliveryTag == s.tag {
		s.tag, s.heardAt = 0, now
	}
}

// patience is how long a message to the lane's target waits for an answer, if the session has this patience.
func (s *silence) patience(session time.Duration) time.Duration {
	if s.heardAt.After(s.gaveUpAt) {
		return silentAfter
	}
	return session
}

// sweep looks for messages without an answer, more often if there were any.
func (s *Session) sweep(now time.Time) error {
	defer func() { s.lanes.sweep.Reset(s.Patience.At(now) / 5) }()
	if s.alarm.active {
		return nil
	}
	for _, l := range s.lanes.all {
		if !l.setsAside {
			continue
		}
		if err := s.settleSilent(l, s.isSilent, now); err != nil {
			return err
		}
	}
	return nil
}

// settleSilent settles messages whose confirms the library holds back after an unanswered message. Silent messages count as refused.
func (s *Session) settleSilent(l *lane, isSilent func(l *lane, m *message, oldest bool, now time.Time) bool, now time.Time) error {
	var oldest *message
	if len(l.outstanding) > 0 {
		oldest = l.outstanding[0]
	}
	accepted := l.takeAccepted()
	silent := l.takeOut(func(m *message) bool { return isSilent(l, m, m == oldest, now) })
	if err := each(accepted, func(m *message) error { return s.answered(l, m) }); err != nil {
		return err
	}
	for _, m := range silent {
		if l.setsAside {
			s.Patience.GiveUp(now)
		}
		l.silence.gaveUp(m.sent.tag, now)
		l.settled(m)
		if err := s.proceed(l, m, m.verdict.nacked(m)); err != nil {
			return err
		}
	}
	s.renew(l)
	return s.release(l)
}

// isSilent reports whether a message has waited too long, since the broker accepts messages that were published long after it. The
// queues that answer have the message, and the refused queue keeps it for the silent one. If the broker accepts no later message, the
// oldest one is given up, to test whether the broker would.
func (s *Session) isSilent(l *lane, m *message, oldest bool, now time.Time) bool {
	patience := l.silence.patience(s.Patience.At(now))
	return s.alarm.waited(m.sent.at, s.lanes.heardOf) > patience ||
		oldest && s.alarm.waited(m.sent.at, now) > patience && now.Sub(s.Patience.gaveUpAt) > patience
}

// crowded reports whether the channel is as full as it can get while a queue does not answer.
func (l *lane) crowded(now time.Time) bool {
	first := l.silence.tag
	if l.setsAside && first == 0 && len(l.outstanding) > 0 && now.Sub(l.outstanding[0].sent.at) > silentAgain {
		first = l.outstanding[0].sent.tag
	}
	return first > 0 && l.published-first >= mostUnheard
}

// confirmTimeout is longer than the 65 s after which a broker gives up on a queue that has no majority of its members online. The
// broker's nack then comes first.
const confirmTimeout = 75 * time.Second

// stalled returns an error if the session must be renewed.
func (s *Session) stalled(now time.Time) error {
	if s.alarm.active {
		if s.inbox.full() {
			// The unread messages can be the cause of the alarm.
			return errors.New("the broker accepts no messages, and has sent more large messages than fit: giving them back")
		}
		return s.inbox.lost() // no delivery shows this during an alarm
	}
	s.inbox.observe(now)
	for _, l := range s.Flow.observe(s.lanes, s.alarm, now) {
		if err := s.settleSilent(l, func(*lane, *message, bool, time.Time) bool { return true }, now); err != nil {
			return err
		}
	}
	for _, l := range s.lanes.all {
		if len(l.outstanding) > 0 && s.alarm.waited(l.outstanding[0].sent.at, now) > confirmTimeout {
			return fmt.Errorf("the broker has not confirmed a message for %s", confirmTimeout)
		}
	}
	return s.aimWaiting()
}
