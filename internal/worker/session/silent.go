package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// silentAfter is how much longer than a later message one can wait for the broker's answer, until it counts as refused.
	silentAfter = 5 * time.Second
	// silentAgain is the same as long as an address does not answer: what waits occupies the window.
	silentAgain = 250 * time.Millisecond
	// mostUnheard is how many messages go to a channel since one that is not answered. With 32 for a quorum queue that does not
	// answer, the broker gives the channel no more credit, and 200 later it reads nothing more from the connection.
	mostUnheard = 128
	// mostSilent is how many addresses have a channel of their own at most.
	mostSilent = 32
)

// address tells apart what can go to different queues: by the additional key, if there is one, and otherwise by the key.
type address struct{ exchange, key string }

func addressOf(r deadletter.Route) address {
	if len(r.CC) > 0 {
		return address{r.Exchange, r.CC[0]}
	}
	return address{r.Exchange, r.Key}
}

// Patience says how long a message waits for the broker's answer. It is short while a queue does not answer.
type Patience struct{ gaveUpAt time.Time }

// At is the patience at this time.
func (p Patience) At(now time.Time) time.Duration {
	if now.Sub(p.gaveUpAt) < refusalsOver {
		return silentAgain
	}
	return silentAfter
}

// GiveUp notes that a message was given up.
func (p *Patience) GiveUp(now time.Time) { p.gaveUpAt = now }

// Silent are a flow's addresses that do not answer. They outlive a session: the next one knows from its first message what not to put
// behind them.
type Silent struct {
	patience Patience
	// addresses have a channel of their own each, by this number.
	addresses map[address]int
	// refusing are the addresses whose queues have refused a message, each with the time of the last refusal.
	refusing map[address]time.Time
}

// NewSilent knows of none yet.
func NewSilent() *Silent {
	return &Silent{addresses: map[address]int{}, refusing: map[address]time.Time{}}
}

// silence is about queues that do not answer.
type silence struct {
	*Silent
	// heardOf is when what the broker has accepted was published last.
	heardOf time.Time
	// timer fires when it is time to look for them.
	timer *time.Timer
}

// heard notes that the broker has accepted a message.
func (s *silence) heard(m *message) {
	if m.publishedAt.After(s.heardOf) {
		s.heardOf = m.publishedAt
	}
	delete(s.addresses, addressOf(m.route))
}

// begin gives an address that does not answer a channel of its own, and reports whether that is new.
func (s *Silent) begin(at address) bool {
	if _, known := s.addresses[at]; known {
		return false
	}
	if len(s.addresses) >= mostSilent {
		clear(s.addresses)
	}
	number, taken := 1, slices.Collect(maps.Values(s.addresses))
	for slices.Contains(taken, number) {
		number++
	}
	s.addresses[at] = number
	return true
}

// isolates reports whether an address has a channel of its own, and gives it one if there is room.
func (s *Silent) isolates(at address) bool {
	_, known := s.addresses[at]
	return known || len(s.addresses) < mostSilent && s.begin(at)
}

// refused notes that a queue behind an address has refused a message.
func (s *Silent) refused(at address, now time.Time) {
	if len(s.refusing) >= mostRefusing {
		clear(s.refusing)
	}
	s.refusing[at] = now
}

// refuses reports whether what goes to the address ends in the refused queue anyway.
func (s *Silent) refuses(at address, now time.Time) bool {
	last, known := s.refusing[at]
	return known && now.Sub(last) < refusalsOver
}

// late notes that what was given up was accepted: the address was only slow, and if there is no other, so was everything.
func (s *Silent) late(at address) {
	if delete(s.addresses, at); len(s.addresses) == 0 {
		s.patience = Patience{}
	}
}

// sweep looks for messages without an answer, more often if there were any.
func (s *Session) sweep(now time.Time) error {
	defer func() { s.silence.timer.Reset(s.silence.patience.At(now) / 5) }()
	if s.alarm.active {
		return nil
	}
	if s.silence.patience.At(now) == silentAfter {
		clear(s.silence.addresses)
	}
	for _, p := range s.publishers.all {
		if !p.setsAside {
			continue
		}
		if err := s.settleSilent(p, now); err != nil {
			return err
		}
	}
	return nil
}

// settleSilent settles what the library says nothing about: it keeps back the confirms of what follows an unanswered message. One that
// is unanswered while the broker accepts what was published long after it counts as refused. The queues that answer have it, and the
// refused queue is for the one that does not.
func (s *Session) settleSilent(p *publisher, now time.Time) error {
	var accepted, silent, rest []*message
	for i, m := range p.outstanding {
		switch {
		case m.publishTag == 0: // the channel is closed
			rest = append(rest, m)
		case m.accepted():
			accepted = append(accepted, m)
		case s.isSilent(m, i == 0, now):
			silent = append(silent, m)
		default:
			rest = append(rest, m)
		}
	}
	p.drainReturns() // now, since a return comes before its confirm
	p.outstanding = rest
	for _, m := range accepted {
		if err := s.answered(p, m); err != nil {
			return err
		}
	}
	for _, m := range silent {
		if err := s.giveUp(p, m, now); err != nil {
			return err
		}
	}
	s.renew(p)
	return s.release(p)
}

// isSilent reports whether a message has waited for too long. If the broker accepts nothing later, the oldest one tries whether it would.
func (s *Session) isSilent(m *message, oldest bool, now time.Time) bool {
	patience := s.silence.patience.At(now)
	if m.again {
		patience = silentAfter
	}
	return s.alarm.waited(m.publishedAt, s.silence.heardOf) > patience ||
		oldest && s.alarm.waited(m.publishedAt, now) > patience && now.Sub(s.silence.patience.gaveUpAt) > patience
}

// giveUp handles a message that was not answered. The first one can be what its channel stands still at: one that first publishes to a
// queue on a frozen node does. What goes to the same address has another channel from now on. What waits behind it has only waited:
// it is published once more, on a channel of its own, unless the refused queue gets it anyway.
func (s *Session) giveUp(p *publisher, m *message, now time.Time) error {
	s.silence.patience.GiveUp(now)
	at := addressOf(m.route)
	if p.unheard == 0 {
		p.unheard, p.unheardOf = m.publishTag, at
		if s.silence.begin(at) {
			p.stale = true
		}
	}
	p.took(m)
	if m.again || at == p.unheardOf || s.silence.refuses(at, now) || !s.silence.isolates(at) {
		return s.proceed(p, m, m.verdict.nacked(m))
	}
	m.again = true
	return s.publish(m)
}

// crowded reports whether the channel has all that it can get while a queue does not answer.
func (p *publisher) crowded(now time.Time) bool {
	first := p.unheard
	if p.setsAside && first == 0 && len(p.outstanding) > 0 && now.Sub(p.outstanding[0].publishedAt) > silentAgain {
		first = p.outstanding[0].publishTag
	}
	return first > 0 && p.published-first >= mostUnheard
}

const (
	// nackTimeout is how long the broker can refuse everything before the session is renewed.
	nackTimeout = 5 * time.Second
	// confirmTimeout is longer than the 65 s after which a broker gives up on a queue that has no
	// majority of its members online, so that its nack comes first.
	confirmTimeout = 75 * time.Second
)

// errCrowdedBroker gives back what the broker has sent and the session does not read: the alarm can be about that.
var errCrowdedBroker = errors.New("the broker accepts no messages, and has sent more large ones than fit: giving them back")

// stalled is an error when the session has to be renewed.
func (s *Session) stalled(now time.Time) error {
	if s.alarm.active {
		if s.inbox.full() {
			return errCrowdedBroker
		}
		return s.inbox.lost() // which no delivery shows meanwhile
	}
	s.inbox.observe(now)
	if f, ok := s.Flow.(observer); ok {
		if err := f.observe(s.publishers, s.alarm, now); err != nil {
			return err
		}
	}
	for _, p := range s.publishers.all {
		if err := p.stalled(now, s.alarm); err != nil {
			return err
		}
	}
	return s.aimWaiting()
}

// stalled is an error when the broker neither accepts messages nor says so. A session has to be
// renewed then: a channel that met the election of a queue's leader can go on refusing for as long
// as the old leader's node is down, when a new one is served at once.
func (p *publisher) stalled(now time.Time, a alarm) error {
	if !p.nackedSince.IsZero() && a.waited(p.nackedSince, now) > nackTimeout {
		return fmt.Errorf("the broker has refused every message for %s", nackTimeout)
	}
	if len(p.outstanding) > 0 && a.waited(p.outstanding[0].publishedAt, now) > confirmTimeout {
		return fmt.Errorf("the broker has not confirmed a message for %s", confirmTimeout)
	}
	return nil
}

// refused notes that the broker did not accept a message that has to go where it was going.
func (p *publisher) refused(now time.Time) {
	if p.nackedSince.IsZero() {
		p.nackedSince = now
	}
}
