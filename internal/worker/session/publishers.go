package session

import (
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// mostAnswers is how many answers wait for the loop at most.
const mostAnswers = 1024

// publishers are one per exchange, each with a channel of its own, so that an exchange that is missing, or whose target has no
// majority, does not silence the others. A channel is opened for the first message.
type publishers struct {
	// all are by [deadletter.Route.Channel], and more for what does not answer.
	all map[string]*publisher
	// open opens a channel.
	open func() (outlet, error)
}

// to is the publisher for a route.
func (s *Session) to(route deadletter.Route) *publisher {
	name := route.Channel()
	if number, silent := s.silence.addresses[addressOf(route)]; silent {
		name = fmt.Sprint(name, " silent ", number)
	}
	p, found := s.publishers.all[name]
	if !found {
		p = newPublisher(route.Exchange)
		p.watch, p.setsAside, p.shut = s.watch.Exchange(route.Exchange), s.Flow.setsAside(route.Exchange), true
		s.publishers.all[name] = p
		s.openSoon(p, 0)
	}
	return p
}

// openSoon opens a publisher's channel, without stopping the loop.
func (s *Session) openSoon(p *publisher, after time.Duration) {
	time.AfterFunc(after, func() {
		o, err := s.publishers.open()
		s.complete(func() error { return s.opened(p, o, err) })
	})
}

// opened publishes what had to wait.
func (s *Session) opened(p *publisher, o outlet, err error) error {
	if err != nil {
		return err
	}
	p.resume(o)
	go s.forward(p, o)
	return s.release(p)
}

// answer is the broker's answer to a publish, or its last word on a channel.
type answer struct {
	*publisher
	channel *amqp.Channel
	amqp.Confirmation
	ok bool
}

// late reports whether the publisher has another channel meanwhile.
func (a answer) late() bool { return a.channel != a.Channel }

// forward hands the answers of a channel to the loop, in their order. After the session it only takes them: the library waits for
// that.
func (s *Session) forward(p *publisher, o outlet) {
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

// outstanding is how many messages have no confirm yet.
func (ps publishers) outstanding() (n int) {
	for _, p := range ps.all {
		n += len(p.outstanding)
	}
	return n
}

// outstandingTo are the messages without a confirm that went to an exchange.
func (ps publishers) outstandingTo(exchange string) []*message {
	if p, found := ps.all[exchange]; found {
		return p.outstanding
	}
	return nil
}

// publishIDs are unique: the prefix is the session's.
type publishIDs struct {
	prefix string
	count  uint64
}

func (ids *publishIDs) next() string {
	ids.count++
	return ids.prefix + strconv.FormatUint(ids.count, 36)
}
