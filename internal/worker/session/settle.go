package session

import (
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

const (
	// lastConfirms is how long a session that ends waits for the confirms that are on their way.
	lastConfirms = 1500 * time.Millisecond
	// ackGrace is for the broker to pass the last acknowledgements on to the inbox. It drops those that its
	// channel still holds for a quorum queue when the channel closes, and delivers the messages again.
	ackGrace = 500 * time.Millisecond
)

// settleLast acknowledges what the broker confirms in the moment before a session ends on an error:
// the next session would publish it once more. What was nacked or returned is left to that one.
func (s *Session) settleLast() {
	s.watch.Enter(metrics.Connected)
	deadline := time.After(time.Until(earlier(time.Now().Add(lastConfirms), s.drainedBy)))
	for s.publishers.outstanding() > 0 {
		var done bool
		select {
		case a := <-s.answers:
			done = s.settleOne(a)
		case <-s.ended: // nothing can be acknowledged then
			done = true
		case <-deadline:
			done = true
		}
		if done {
			break
		}
	}
	for _, p := range s.publishers.all {
		if s.settleAccepted(p) != nil {
			break
		}
	}
	if !s.intake.channel.IsClosed() {
		time.Sleep(ackGrace)
	}
}

// settleOne reports whether nothing else can be settled, because the inbox's channel is closed.
func (s *Session) settleOne(a answer) (done bool) {
	p := a.publisher
	if a.late() {
		return false
	}
	if !a.ok {
		err := s.settleAccepted(p)
		p.outstanding = nil
		return err != nil
	}
	m := p.confirmed(a.DeliveryTag)
	return m != nil && m.accepted() && !p.took(m) && s.finish(m) != nil
}

// settleAccepted acknowledges what the broker is known to keep, although the library has not said so: it
// holds confirms back until all earlier messages have theirs. Nothing can be settled in order after that.
func (s *Session) settleAccepted(p *publisher) error {
	var accepted, rest []*message
	for _, m := range p.outstanding {
		// One that was not published for want of a channel has the confirmation of the time before.
		if m.publishTag != 0 && m.accepted() {
			accepted = append(accepted, m)
		} else {
			rest = append(rest, m)
		}
	}
	p.drainReturns() // now, since a return comes before its confirm
	for i, m := range accepted {
		if p.returned[m.publishID] {
			rest = append(rest, m)
			continue
		}
		if err := s.finish(m); err != nil {
			p.outstanding = slices.Concat(rest, accepted[i:])
			return err
		}
	}
	p.outstanding = rest
	return nil
}
