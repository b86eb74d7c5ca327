package configured

import (
	"context"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// freshListings are those of one vhost: one that runs, which has the only turn, and one that waits for
// the turn and can still be joined.
type freshListings struct {
	turn chan struct{}
	next *freshListing
}

type freshListing struct {
	done      chan struct{}
	vhost     topology.Vhost
	err       error
	cancelled bool
}

// Fresh reads a vhost for a change. Nothing is remembered: the reading begins after the call, so it
// shows what the broker had by then, just as if each caller read for itself. Those who call while
// another reading is under way share the one that follows it. The answer must not be changed.
func (s *Provider) Fresh(ctx context.Context, vhost string) (topology.Vhost, error) {
	for {
		l, leads := s.join(vhost)
		if leads {
			s.lead(ctx, vhost, l)
			return l.vhost, l.err
		}
		select {
		case <-ctx.Done():
			return topology.Vhost{}, context.Cause(ctx)
		case <-l.done:
		}
		if !l.cancelled { // else whoever read for all gave up, which is not everybody's affair
			return l.vhost, l.err
		}
	}
}

// join returns the listing that comes next, and whether it is the caller's to make.
func (s *Provider) join(vhost string) (*freshListing, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f := s.fresh[vhost]
	if f == nil {
		f = &freshListings{turn: make(chan struct{}, 1)}
		s.fresh[vhost] = f
	}
	leads := f.next == nil
	if leads {
		f.next = &freshListing{done: make(chan struct{})}
	}
	return f.next, leads
}

// lead waits for the turn, lets nobody join any more, and only then reads.
func (s *Provider) lead(ctx context.Context, vhost string, l *freshListing) {
	defer close(l.done)
	s.mutex.Lock()
	f := s.fresh[vhost]
	s.mutex.Unlock()
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
	}
	s.mutex.Lock()
	f.next = nil
	s.mutex.Unlock()
	if l.err = ctx.Err(); l.err == nil {
		l.vhost, l.err = s.list(ctx, vhost)
	}
	l.cancelled = ctx.Err() != nil
}
