package worker

import (
	"context"
	"time"
)

// suspension is what a publisher does when the broker has closed its channel over a publish: it keeps
// what it cannot publish until the channel is open again. The others go on meanwhile.
type suspension struct {
	// shut tells that the channel is closed, and is being opened again.
	shut bool
	// forbidden tells that it closed because the user may not publish to the exchange.
	forbidden bool
	// closures is how often in a row the broker closed the channel, told whether the log says that the
	// exchange is missing or forbidden.
	closures int
	told     bool
	// unbound tells that the exchange has no queue for messages that can go nowhere else, and that the
	// log says so.
	unbound bool

	// waiting are the messages that are published next, in this order.
	waiting []*message
	// suspects is how many go one at a time, the outstanding one included: whichever of them made the
	// broker close the channel, the others are then not published in vain, and twice.
	suspects int
}

// suspend makes everything outstanding wait for the next channel.
func (p *publisher) suspend() {
	if p.suspects == 0 {
		p.suspects = len(p.outstanding)
	}
	p.waiting = append(p.outstanding, p.waiting...)
	p.shut, p.outlet = true, outlet{}
	p.outstanding, p.returned, p.nackedSince = nil, map[string]bool{}, time.Time{}
}

// resume goes on with a new channel.
func (p *publisher) resume(o outlet) {
	p.outlet, p.shut, p.forbidden = o, false, false
}

// ready tells whether a message can be published now.
func (p *publisher) ready() bool {
	return !p.shut && (p.suspects == 0 || len(p.outstanding) == 0)
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
	p.closures, p.told, p.unbound = 0, false, false
}

// next takes the message that waits longest.
func (p *publisher) next() *message {
	m := p.waiting[0]
	p.waiting[0] = nil // or the body would stay in memory
	p.waiting = p.waiting[1:]
	return m
}

// reopen opens the channel again after a moment, without stopping the loop.
func (s *session) reopen(ctx context.Context, p *publisher) {
	// A stopping session still finishes what is in flight.
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(pause(p.closures), func() {
		o, err := openOutlet(ctx, s.publishing, s.window)
		s.completions <- func() error { return s.reopened(p, o, err) }
	})
	p.closures++
}

// reopened publishes what had to wait.
func (s *session) reopened(p *publisher, o outlet, err error) error {
	if err != nil {
		return err
	}
	p.resume(o)
	return s.release(p)
}

// release publishes as much of what waits as may be published now.
func (s *session) release(p *publisher) error {
	for len(p.waiting) > 0 && p.ready() && !s.blocked {
		if err := s.sendNext(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) sendNext(p *publisher) error {
	m := p.next()
	if s.rejudged(m) {
		p.cleared()
		return s.publish(m)
	}
	return s.send(p, m)
}
