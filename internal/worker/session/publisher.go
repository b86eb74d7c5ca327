package session

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// publisher publishes to one exchange. Only the session's loop must use it.
type publisher struct {
	exchange string
	// idHeader names the header with each message's publish id.
	idHeader string
	watch    *metrics.Exchange
	confirmChannel

	// outstanding are the messages without a confirm. The library hands out confirms in publishing order, so the first
	// message is always confirmed next.
	outstanding []*message
	// returned has the publish ids of outstanding messages that the broker returned.
	returned map[string]bool
	// nackedSince is when the broker began to refuse messages. It is zero once the broker has accepted one.
	nackedSince time.Time
	// setsAside says that a message goes to the refused queue if a queue behind the exchange refuses it.
	setsAside bool

	// waiting are the messages to publish next, in this order. The publisher keeps them while its channel is closed.
	// The other publishers carry on.
	waiting []*message
	// shut says that the channel is closed and is being opened again.
	shut bool
	// forbidden says that the channel closed because the user must not publish to the exchange.
	forbidden bool
	// closures counts how often in a row the broker closed the channel. warned says that the log already reports the
	// exchange as missing or forbidden.
	closures int
	warned   bool
	// stale asks for a new channel as soon as no confirm is outstanding. renewed is when the last such request was
	// made.
	stale   bool
	renewed time.Time

	// suspects is how many messages go one at a time, the outstanding one included, to find the message that makes the
	// broker close the channel. This avoids publishing the others twice.
	suspects int
	// cautious is how many messages go one at a time after the latest refused one. It doubles each time.
	cautious int

	// unbound says that the exchange has no queue for messages that can go nowhere else, and that the log reports it.
	unbound bool
	// nextProbe is when one message can try the exchange again after its only queue refused one. It is zero if all
	// messages can.
	nextProbe time.Time
}

// confirmChannel is a channel and its confirms. It has room for all outstanding messages, since the inbox's window
// bounds them.
type confirmChannel struct {
	amqpconn.Confirming
	confirms chan amqp.Confirmation

	// published is the delivery tag of the latest message. unheard and unheardOf are the tag and the address of the
	// first message that was given up. unheard is 0 while the channel has given up no message.
	published, unheard uint64
	unheardOf          address
}

func newPublisher(exchange, idHeader string) *publisher {
	return &publisher{exchange: exchange, idHeader: idHeader, returned: map[string]bool{}}
}

// ready reports whether the message can be published now.
func (p *publisher) ready(m *message) bool {
	return !p.shut && !p.stale && !p.crowded(time.Now()) && (len(p.outstanding) == 0 || p.suspects == 0 && !m.goesAlone())
}

// publish sends a message. After an error, the channel's state is unknown, so the session must end. A closed channel is
// no error here: confirms is closed, too, and tells the loop.
func (p *publisher) publish(m *message, route deadletter.Route, publishing amqp.Publishing) error {
	const mandatory, immediate = true, false
	confirmation, err := p.PublishWithDeferredConfirm(route.Exchange, route.Key, mandatory, immediate, publishing)
	switch {
	case errors.Is(err, amqp.ErrClosed):
		m.publishTag = 0
	case err != nil:
		return fmt.Errorf("publish to exchange %q: %w", route.Exchange, err)
	default:
		m.publishTag, m.confirmation = confirmation.DeliveryTag, confirmation
		p.published = m.publishTag
	}
	m.publishedAt = time.Now() // writing a large message can take long
	p.outstanding = append(p.outstanding, m)
	if m.goesAlone() {
		p.suspects = max(1, p.suspects)
	}
	return nil
}

// confirmed removes and returns the message that a confirm is for. It returns nil if the message is settled.
func (p *publisher) confirmed(tag uint64) *message {
	p.drainReturns()
	if len(p.outstanding) == 0 || p.outstanding[0].publishTag != tag {
		return nil
	}
	return shift(&p.outstanding)
}

// shift removes and returns the first message.
func shift(messages *[]*message) *message {
	m := (*messages)[0]
	(*messages)[0] = nil // else the body would stay in memory
	*messages = (*messages)[1:]
	return m
}

// answered notes that the broker has judged a message itself, so the exchange is there and bound.
func (p *publisher) answered() {
	p.cleared()
	p.closures, p.warned, p.unbound = 0, false, false
}

// took notes that a message needs no further answer, and reports whether it was returned.
func (p *publisher) took(m *message) (returned bool) {
	returned = p.returned[m.publishID]
	delete(p.returned, m.publishID)
	p.watch.Answered(time.Since(m.publishedAt), m.accepted(), returned)

	if returned {
		p.cleared()
	} else {
		p.answered()
	}
	if m.accepted() {
		p.nackedSince = time.Time{}
	}
	if m.accepted() && !returned {
		p.nextProbe = time.Time{}
	}
	return returned
}

// noteReturn remembers which message was returned. If a return does not identify its message, all outstanding messages
// count as returned.
func (p *publisher) noteReturn(r amqp.Return) {
	if id, ok := r.Headers[p.idHeader].(string); ok {
		p.returned[id] = true
		return
	}
	for _, m := range p.outstanding {
		p.returned[m.publishID] = true
	}
}

func (p *publisher) drainReturns() {
	for {
		select {
		case r, ok := <-p.Returns:
			if !ok {
				return
			}
			p.noteReturn(r)
		default:
			return
		}
	}
}

// mostAnswers bounds how many answers wait for the loop.
const mostAnswers = 1024

// publishers has one publisher per exchange, each with a channel of its own. So a missing exchange, or one whose target
// has no majority, does not silence the others. A publisher's first message opens its channel.
type publishers struct {
	// all is keyed by [deadletter.Route.Channel]. Each silent address has a further entry.
	all  map[string]*publisher
	open func() (confirmChannel, error)
}

// to returns the publisher for a route.
func (s *Session) to(route deadletter.Route) *publisher {
	name := route.Channel()
	if number, silent := s.silence.addresses[addressOf(route)]; silent {
		name = fmt.Sprint(name, " silent ", number)
	}
	p, found := s.publishers.all[name]
	if !found {
		p = newPublisher(route.Exchange, s.Flow.Config().PublishIDHeader())
		p.watch, p.setsAside, p.shut = s.watch.Exchange(route.Exchange), s.Flow.setsAside(route.Exchange), true
		s.publishers.all[name] = p
		s.openSoon(p, 0)
	}
	return p
}

// openSoon opens a publisher's channel while the loop goes on. It then publishes the messages that waited for the
// channel.
func (s *Session) openSoon(p *publisher, after time.Duration) {
	time.AfterFunc(after, func() {
		o, err := s.publishers.open()
		s.complete(func() error {
			if err != nil {
				return err
			}
			p.confirmChannel, p.shut, p.forbidden, p.stale = o, false, false, false
			go s.forward(p, o)
			return s.release(p)
		})
	})
}

// answer is the broker's answer to a publish. If ok is false, the channel has closed.
type answer struct {
	*publisher
	channel *amqp.Channel
	amqp.Confirmation
	ok bool
}

// late reports whether the publisher has another channel by now.
func (a answer) late() bool { return a.channel != a.Channel }

// forward hands a channel's answers to the loop, in their order. After the session it drops them, since the library
// waits until they are read.
func (s *Session) forward(p *publisher, o confirmChannel) {
	for ok := true; ok; {
		a := answer{publisher: p, channel: o.Channel}
		a.Confirmation, ok = <-o.confirms
		a.ok = ok
		select {
		case s.answers <- a:
		case <-s.ended:
		}
	}
}

func (ps publishers) outstanding() (n int) {
	for _, p := range ps.all {
		n += len(p.outstanding)
	}
	return n
}

// outstandingTo returns the messages without a confirm that went to an exchange.
func (ps publishers) outstandingTo(exchange string) []*message {
	if p, found := ps.all[exchange]; found {
		return p.outstanding
	}
	return nil
}

// bindingDeferrals is how often, in nine seconds, a publish is deferred after a missing exchange is back without a
// binding for the message. Bindings often come a moment after the exchange.
const bindingDeferrals = 8

// confirm handles the broker's answer to a publish.
func (s *Session) confirm(a answer) error {
	p := a.publisher
	if a.late() {
		return nil
	}
	if !a.ok {
		return s.channelClosed(p)
	}
	m := p.confirmed(a.DeliveryTag)
	if m == nil {
		if a.Ack && a.DeliveryTag == p.unheard {
			s.silence.late(p.unheardOf)
		}
		return nil
	}
	if err := s.answered(p, m); err != nil {
		return err
	}
	s.renew(p)
	return s.release(p)
}

// answered handles the broker's answer to a message.
func (s *Session) answered(p *publisher, m *message) error {
	impeded := p.impeded()
	returned := p.took(m)
	if impeded && !p.impeded() {
		s.Log.Info("the exchange is available again", "exchange", p.exchange)
	}
	if !m.accepted() {
		if p.setsAside {
			s.silence.refused(addressOf(m.route), time.Now())
		}
		return s.proceed(p, m, m.verdict.nacked(m))
	}
	s.silence.heard(m)
	switch {
	case returned && p.warned && p.exchange != "" && m.deferrals < bindingDeferrals: // the default exchange needs no bindings
		s.keep(m)
		return nil
	case returned:
		return s.proceed(p, m, m.verdict.returned(m))
	}
	return s.finish(m)
}

const (
	// renewEvery is the least time between two channels that are opened because queues refuse messages.
	renewEvery = 10 * time.Second
	// outlivedBy is how long a channel stays open after its successor was requested. The broker can report one queue's
	// refusal before another queue has taken the message from the channel.
	outlivedBy = 5 * time.Second
)

// renew replaces a channel that can itself be the cause of refusals. On RabbitMQ 3.10, a channel that a full quorum
// queue has refused stays refused, even when the queue has room again. renew waits until no message is outstanding.
func (s *Session) renew(p *publisher) {
	if !p.stale && !p.crowded(time.Now()) || p.shut || len(p.outstanding) > 0 {
		return
	}
	old := p.Channel
	time.AfterFunc(outlivedBy, func() { _ = old.Close() }) // its answer changes nothing
	s.reopen(p)
}
