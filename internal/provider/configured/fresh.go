package configured

import (
	"context"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// freshListings are the listings of one vhost for changes. At most one runs, which has the turn. The next one waits for the
// turn, and callers can still join it.
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

// Fresh reads a vhost for a change. The reading begins after the call, so it is as current as if each caller read for itself.
// Callers during a reading share the next one. The result must not be changed.
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
		if !l.cancelled { // otherwise the caller that led the reading was cancelled, so try again
			return l.vhost, l.err
		}
	}
}

// join returns the next listing, and whether the caller must make it.
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

// lead waits for the turn, closes the listing to further callers, and then reads.
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
