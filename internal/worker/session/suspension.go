package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// alone is how large a body is at least that goes alone: RabbitMQ from 4.0 on refuses larger ones by default, and
	// a queue may have some of earlier times.
	alone = 16 << 20
	// mostWary is how many windows go one at a time at most after a message that the broker did not accept.
	mostCautious = 64
)

// suspension is what a publisher does when the broker has closed its channel over a publish: it keeps
// what it cannot publish until the channel is open again. The others go on meanwhile.
type suspension struct {
	// shut says that the channel is closed, and is being opened again.
	shut bool
	// forbidden says that it closed because the user may not publish to the exchange.
	forbidden bool
	// closures is how often in a row the broker closed the channel, told whether the log says that the
	// exchange is missing or forbidden.
	closures int
	warned   bool
	// stale says that the channel is to be opened again as soon as nothing is outstanding on it, and renewed when it last was.
	stale   bool
	renewed time.Time
	// unbound says that the exchange has no queue for messages that can go nowhere else, and that the
	// log says so.
	unbound bool
	// nextProbe is when a message may try the exchange again whose only queue took none, zero if all of them may.
	nextProbe time.Time

	// waiting are the messages that are published next, in this order.
	waiting []*message
	// suspects is how many go one at a time, the outstanding one included: whichever of them made the
	// broker close the channel, the others are then not published twice without need.
	suspects int
	// cautious is how many went one at a time since the broker did not accept a message.
	cautious int
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

// ready reports whether the message can be published now.
func (p *publisher) ready(m *message) bool {
	return !p.shut && !p.stale && !p.crowded(time.Now()) && (len(p.outstanding) == 0 || p.suspects == 0 && !m.goesAlone())
}

// goesAlone reports whether the broker may refuse the message for its size: nothing else is under way then.
func (m *message) goesAlone() bool { return len(m.delivery.Body) >= alone }

// impeded reports whether the log says that the exchange does not take messages.
func (p *publisher) impeded() bool { return p.warned || p.unbound || !p.nextProbe.IsZero() }

// impede has messages wait for the only queue of an exchange, which refused one.
func (s *Session) impede(p *publisher) {
	if !p.impeded() {
		s.Log.Warn(deferredFull, "exchange", p.exchange)
	}
	p.obstruct(time.Now())
	p.stale = true
}

// obstruct has one message at a time try the exchange, from time to time.
func (p *publisher) obstruct(now time.Time) { p.nextProbe = now.Add(unboundProbe) }

// obstructed reports whether a message should not try the exchange now.
func (p *publisher) obstructed(now time.Time) bool {
	return !p.nextProbe.IsZero() && (now.Before(p.nextProbe) || len(p.outstanding) > 0)
}

// slowDown has messages go one at a time for a while after one that the broker did not accept, longer each time: there may be
// more of its kind, and each would have the others published twice.
func (p *publisher) slowDown(window int) {
	p.cautious = min(max(window, 2*p.cautious), mostCautious*window)
	p.suspects = max(p.suspects, p.cautious)
}

// cleared notes that the message that went alone, if one did, was answered.
func (p *publisher) cleared() {
	if p.suspects > 0 {
		p.suspects--
	}
}

// answered notes that the broker has judged the message itself: the exchange is there, and bound.
func (p *publisher) answered() {
	p.cleared()
	p.closures, p.warned, p.unbound = 0, false, false
}

// next takes the message that waits longest.
func (p *publisher) next() *message {
	m := p.waiting[0]
	p.waiting[0] = nil // or the body would stay in memory
	p.waiting = p.waiting[1:]
	return m
}

// alarm follows the broker's resource alarms, during which it accepts no messages.
type alarm struct {
	notices chan amqp.Blocking
	active  bool
	// clearedAt is when the last one cleared, zero if there was none.
	clearedAt time.Time
}

// waited is how long ago something was, without the time until the broker's last alarm cleared.
func (a alarm) waited(then, now time.Time) time.Duration {
	if then.Before(a.clearedAt) {
		then = a.clearedAt
	}
	return now.Sub(then)
}

// unlessBlocked are the deliveries, or a channel that is never ready during an alarm.
func (a alarm) unlessBlocked(deliveries <-chan amqp.Delivery) <-chan amqp.Delivery {
	if a.active {
		return nil
	}
	return deliveries
}

// alarmChanged resumes what an alarm has stopped, once it clears.
func (s *Session) alarmChanged(b amqp.Blocking, ok bool) error {
	if !ok {
		// The connection is closed: so are the publishers, and they know why.
		s.alarm.notices = nil
		return nil
	}
	s.alarm.active = b.Active
	if b.Active {
		s.Log.Warn("the broker accepts no messages: waiting for its alarm to clear", "reason", b.Reason)
		return nil
	}
	s.Log.Info("the broker accepts messages again")
	if err := s.inbox.lost(); err != nil {
		return err
	}
	s.alarm.clearedAt = time.Now()
	for _, p := range s.publishers.all {
		if err := s.release(p); err != nil {
			return err
		}
	}
	return s.publishBacklog()
}
