package session

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// mostLanes bounds the lanes. If all have messages, further addresses share the lane of their exchange.
	mostLanes = 64
	// mostAnswers bounds how many answers wait for the loop.
	mostAnswers = 1024
)

// lanes has a lane for each address. A lane opens its channel with its first message.
type lanes struct {
	all map[address]*lane
	// most is how many lanes there can be, besides one for each exchange.
	most    int
	open    func() (confirmChannel, error)
	answers chan answer
	// shut are the exchanges that are missing, or that the user must not publish to.
	shut map[string]bool
	// heardOf is the latest publishing time among the messages that the broker has accepted.
	heardOf time.Time
	// sweep fires when it is time to look for messages without an answer.
	sweep *time.Timer
}

// lanesWithin returns how many lanes a connection has room for, besides one for each exchange. A channel counts twice, since a renewed
// one stays open for a while. One more is for the look for the last queue.
func lanesWithin(exchanges, channelMax int) (most int, err error) {
	if channelMax == 0 {
		return mostLanes, nil
	}
	most = (channelMax-1)/2 - exchanges
	if most < 0 {
		return 0, fmt.Errorf("the broker allows %d channels per connection, and the worker needs %d: raise channel_max",
			channelMax, 2*exchanges+1)
	}
	return min(most, mostLanes), nil
}

// lane returns the lane for a route.
func (s *Session) lane(route deadletter.Route) *lane {
	at := address{route.Exchange, route.Target}
	if l, found := s.lanes.all[at]; found {
		return l
	}
	if len(s.lanes.all) >= s.lanes.most {
		for _, l := range s.lanes.all {
			if l.free() {
				delete(s.lanes.all, l.address)
				*l = lane{channelState: open, confirmChannel: l.confirmChannel}
				return s.assign(l, at)
			}
		}
		if at.target != "" {
			return s.lane(deadletter.Route{Exchange: route.Exchange})
		}
	}
	l := s.assign(&lane{}, at)
	s.openSoon(l, 0)
	return l
}

func (s *Session) assign(l *lane, at address) *lane {
	l.address, l.watch, l.setsAside = at, s.watch.Exchange(at.exchange), s.Flow.setsAside(at.exchange)
	s.lanes.all[at] = l
	return l
}

// openSoon opens a lane's channel while the loop goes on. It then publishes the messages that waited for the channel. During an alarm,
// the broker answers nothing. Renewed channels can take the last numbers for a while.
func (s *Session) openSoon(l *lane, after time.Duration) {
	time.AfterFunc(after, func() {
		channel, err := s.lanes.open()
		s.complete(func() error {
			switch {
			case err != nil && !s.publishing.IsClosed() && (s.alarm.active || errors.Is(err, amqp.ErrChannelMax)):
				s.openAgain(l)
				return nil
			case err != nil:
				return err
			}
			channel.returned = newReturned(s.Flow.Config().PublishIDHeader())
			l.confirmChannel, l.channelState = channel, open
			go s.read(l, channel)
			return s.release(l)
		})
	})
}

// openAgain opens a lane's channel after a pause, which grows while the broker judges no message.
func (s *Session) openAgain(l *lane) {
	s.openSoon(l, pause(l.closures))
	l.closures++
}

// answer is the broker's answer to a publish. If ok is false, the channel has closed.
type answer struct {
	*lane
	channel *amqp.Channel
	amqp.Confirmation
	ok bool
}

// late reports whether the lane has another channel by now.
func (a answer) late() bool { return a.channel != a.Channel }

// read hands a channel's confirms to the loop, and notes its returns. The library waits until a return is taken. So each is noted
// before the confirm of its message comes, without a buffer for every message in flight.
func (s *Session) read(l *lane, c confirmChannel) {
	defer close(c.returned.noMore)
	confirms, returns := c.confirms, c.Returns
	var next answer
	var answers chan<- answer // nil while there is none to hand on
	for {
		select {
		case r, ok := <-returns:
			if !ok {
				returns = nil
				continue
			}
			c.returned.note(r)
		case confirmation, ok := <-confirms:
			next, answers, confirms = answer{l, c.Channel, confirmation, ok}, s.lanes.answers, nil
		case answers <- next:
			if !next.ok {
				return
			}
			answers, confirms = nil, c.confirms
		case <-c.returned.looks:
		case <-s.ended: // the library still waits until all is read
			c.returned.note(amqp.Return{})
			go drain(c.Returns)
			go drain(c.confirms)
			return
		}
	}
}

func drain[T any](from <-chan T) {
	for range from {
	}
}

func (ls lanes) outstanding() (n int) {
	for _, l := range ls.all {
		n += len(l.outstanding)
	}
	return n
}

// bindingDeferrals is how often, in nine seconds, a publish is deferred after a missing exchange is back without a binding for the
// message. Bindings often come a moment after the exchange.
const bindingDeferrals = 8

// confirm handles the broker's answer to a publish.
func (s *Session) confirm(a answer) error {
	l := a.lane
	if a.late() {
		return nil
	}
	if !a.ok {
		return s.channelClosed(l)
	}
	m := l.confirm(a.DeliveryTag)
	if m == nil {
		l.silence.late(a.Confirmation, time.Now())
		return nil
	}
	if err := s.answered(l, m); err != nil {
		return err
	}
	s.renew(l)
	return s.release(l)
}

// answered handles the broker's answer to a message.
func (s *Session) answered(l *lane, m *message) error {
	returned := l.settled(m)
	if !returned {
		s.judged(l, m)
	}
	if !m.accepted() {
		return s.proceed(l, m, m.verdict.nacked(m))
	}
	l.silence.heardAt = time.Now()
	if m.sent.at.After(s.lanes.heardOf) {
		s.lanes.heardOf = m.sent.at
	}
	switch {
	case returned && s.lanes.shut[l.exchange] && l.exchange != "" && m.deferrals < bindingDeferrals: // the default exchange needs no bindings
		s.keep(m)
		return nil
	case returned:
		return s.proceed(l, m, m.verdict.returned(m))
	}
	return s.finish(m)
}

// judged notes that the broker has judged a message itself, so the exchange is there and bound.
func (s *Session) judged(l *lane, m *message) {
	l.closures = 0
	opened := s.lanes.shut[l.exchange]
	if m.accepted() || l.condition != full {
		opened = opened || l.condition != available
		l.condition, l.nextProbe = available, time.Time{}
	}
	if opened {
		delete(s.lanes.shut, l.exchange)
		s.Log.Info("the exchange is available again", "exchange", l.exchange)
	}
}

// unrouted notes that the exchange has no queue for a message, which can go nowhere else.
func (s *Session) unrouted(l *lane, m *message) {
	if l.closed() { // it was not published
		return
	}
	if l.condition != unboundExchange {
		s.Log.Warn(deferredUnbound, "exchange", l.exchange, "message_id", m.delivery.MessageId)
	}
	l.condition = unboundExchange
}

const (
	// renewEvery is the least time between two channels that are opened because queues refuse messages.
	renewEvery = 10 * time.Second
	// outlivedBy is how long a channel stays open after its successor was requested. The broker can report one queue's refusal before
	// another queue has taken the message from the channel.
	outlivedBy = 5 * time.Second
)

// renew replaces a channel that can itself be the cause of refusals. On RabbitMQ 3.10, a channel that a full quorum queue has refused
// stays refused, even when the queue has room again. renew waits until no message is outstanding.
func (s *Session) renew(l *lane) {
	if s.alarm.active || l.closed() || l.channelState == open && !l.crowded(time.Now()) || len(l.outstanding) > 0 {
		return
	}
	old := l.Channel
	time.AfterFunc(outlivedBy, func() { _ = old.Close() }) // its answer changes nothing
	s.reopen(l)
}
