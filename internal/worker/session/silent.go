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
	// silentAfter is how much longer than a later message one can wait for the broker's answer. After that, it counts
	// as refused.
	silentAfter = 5 * time.Second
	// silentAgain replaces silentAfter while an address does not answer, since waiting messages fill the window.
	silentAgain = 250 * time.Millisecond
	// mostUnheard is how many messages go to a channel after an unanswered one. After 32 messages for a quorum queue
	// that does not answer, the broker gives the channel no more credit. After 200 more, it stops reading from the
	// connection.
	mostUnheard = 128
	// mostSilent bounds how many addresses have a channel of their own.
	mostSilent = 32
)

// address identifies a set of target queues, by the additional key if there is one, and otherwise by the key.
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

// GiveUp notes that the session gave a message up.
func (p *Patience) GiveUp(now time.Time) { p.gaveUpAt = now }

// Silent are a flow's addresses that do not answer. They outlive a session. So the next session keeps other messages
// off their channels from the start.
type Silent struct {
	patience Patience
	// addresses have a channel of their own each, by this number.
	addresses map[address]int
	// refusing are the addresses whose queues have refused a message. The value is the time of the last refusal.
	refusing map[address]time.Time
}

// NewSilent returns a Silent without addresses.
func NewSilent() *Silent {
	return &Silent{addresses: map[address]int{}, refusing: map[address]time.Time{}}
}

// silence is a session's view of queues that do not answer.
type silence struct {
	*Silent
	// heardOf is the latest publishing time among the messages that the broker has accepted.
	heardOf time.Time
	// timer fires when it is time to look for silent addresses.
	timer *time.Timer
}

// heard notes that the broker has accepted a message.
func (s *silence) heard(m *message) {
	if m.publishedAt.After(s.heardOf) {
		s.heardOf = m.publishedAt
	}
	delete(s.addresses, addressOf(m.route))
}

// begin gives a silent address a channel of its own, and reports whether that is new.
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

// isolates reports whether an address has a channel of its own. If there is room, it gives it one.
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

// refuses reports whether messages to the address end in the refused queue anyway.
func (s *Silent) refuses(at address, now time.Time) bool {
	last, known := s.refusing[at]
	return known && now.Sub(last) < refusalsOver
}

// late notes that the broker accepted a message after it was given up. The address was only slow. If it was the last
// one, the whole broker was slow, and the usual patience returns.
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

// settleSilent settles messages whose confirms the library holds back after an unanswered message. A message counts as
// refused if the broker accepts messages that were published long after it. The queues that answer have the message,
// and the refused queue keeps it for the silent one.
func (s *Session) settleSilent(p *publisher, now time.Time) error {
	var oldest *message
	if len(p.outstanding) > 0 {
		oldest = p.outstanding[0]
	}
	accepted := p.takeAccepted()
	var silent, rest []*message
	for _, m := range p.outstanding {
		// Without a tag, the channel is closed.
		if m.publishTag != 0 && !m.accepted() && s.isSilent(m, m == oldest, now) {
			silent = append(silent, m)
		} else {
			rest = append(rest, m)
		}
	}
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

// isSilent reports whether a message has waited too long. If the broker accepts no later message, the oldest one is
// given up, to test whether the broker would.
func (s *Session) isSilent(m *message, oldest bool, now time.Time) bool {
	patience := s.silence.patience.At(now)
	if m.again {
		patience = silentAfter
	}
	return s.alarm.waited(m.publishedAt, s.silence.heardOf) > patience ||
		oldest && s.alarm.waited(m.publishedAt, now) > patience && now.Sub(s.silence.patience.gaveUpAt) > patience
}

// giveUp handles a message without an answer. The first such message can block its channel: the first publish to a
// queue on a frozen node does. Later messages to its address get another channel. A message behind it has only waited.
// It is published once more, on a channel for its own address, unless it ends in the refused queue anyway.
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

// crowded reports whether the channel is as full as it can get while a queue does not answer.
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
	// confirmTimeout is longer than the 65 s after which a broker gives up on a queue that has no majority of its
	// members online. The broker's nack then comes first.
	confirmTimeout = 75 * time.Second
)

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
	if err := s.Flow.observe(s.publishers, s.alarm, now); err != nil {
		return err
	}
	for _, p := range s.publishers.all {
		if err := p.stalled(now, s.alarm); err != nil {
			return err
		}
	}
	return s.aimWaiting()
}

// stalled returns an error if the broker stopped accepting messages without an alarm. The session must be renewed
// then. A channel that was open during the election of a queue's leader can refuse messages until the old leader's node
// is back. A new channel is served at once.
func (p *publisher) stalled(now time.Time, a alarm) error {
	if !p.nackedSince.IsZero() && a.waited(p.nackedSince, now) > nackTimeout {
		return fmt.Errorf("the broker has refused every message for %s", nackTimeout)
	}
	if len(p.outstanding) > 0 && a.waited(p.outstanding[0].publishedAt, now) > confirmTimeout {
		return fmt.Errorf("the broker has not confirmed a message for %s", confirmTimeout)
	}
	return nil
}

// refused notes that the broker refused a message that has no other way.
func (p *publisher) refused(now time.Time) {
	if p.nackedSince.IsZero() {
		p.nackedSince = now
	}
}
