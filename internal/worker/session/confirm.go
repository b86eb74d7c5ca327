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
	impeded := p.impeded()
	m, returned, err := p.settle(a.Confirmation)
	if impeded && !p.impeded() {
		s.Log.Info("the exchange is available again", "exchange", p.exchange)
	}
	switch {
	case err != nil:
		return err
	case !m.accepted():
		err = s.Flow.nacked(p, m)
	case returned && p.warned && p.exchange != "" && m.deferrals < bindingDeferrals: // the default exchange has no bindings to wait for
		s.keep(m)
	case returned:
		err = s.Flow.returned(p, m)
	default:
		err = s.finish(m)
	}
	if err != nil {
		return err
	}
	s.renew(p)
	return s.release(p)
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
	if !p.stale || p.shut || len(p.outstanding) > 0 {
		return
	}
	old := p.Channel
	time.AfterFunc(outlivedBy, func() { _ = old.Close() }) // what it answers changes nothing
	p.suspend()
	s.reopen(p)
}
