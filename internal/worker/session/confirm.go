package session

import "time"

// bindingDeferrals is how often, in nine seconds, a publish is deferred when an exchange that was missing is
// back and has no binding for the message: whoever created it may be about to create the bindings.
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

// answered handles what the broker says of a message.
func (s *Session) answered(p *publisher, m *message) error {
	impeded := p.impeded()
	returned := p.took(m)
	if impeded && !p.impeded() {
		s.Log.Info("the exchange is available again", "exchange", p.exchange)
	}
	if !m.accepted() {
		return s.Flow.nacked(p, m)
	}
	s.silence.heard(m)
	switch {
	case returned && p.warned && p.exchange != "" && m.deferrals < bindingDeferrals: // the default exchange has no bindings to wait for
		s.keep(m)
		return nil
	case returned:
		return s.Flow.returned(p, m)
	}
	return s.finish(m)
}

const (
	// renewEvery passes between two channels at least that are opened since queues refuse messages.
	renewEvery = 10 * time.Second
	// outlivedBy is how long a channel stays open after its successor was asked for. A broker says that one queue has refused a message
	// while another one may still have to take it from the channel.
	outlivedBy = 5 * time.Second
)

// refusedOne notes that a queue refused a message, which may be the channel's fault.
func (p *publisher) refusedOne(now time.Time) {
	if now.Sub(p.renewed) > renewEvery {
		p.stale, p.renewed = true, now
	}
}

// renew opens a channel again whose refusals may be its own: on RabbitMQ 3.10, one that a full quorum queue has refused is refused
// even when the limit is gone. It waits for a moment in which nothing is outstanding.
func (s *Session) renew(p *publisher) {
	if !p.stale && !p.crowded(time.Now()) || p.shut || len(p.outstanding) > 0 {
		return
	}
	old := p.Channel
	time.AfterFunc(outlivedBy, func() { _ = old.Close() }) // what it answers changes nothing
	p.suspend()
	s.reopen(p)
}
