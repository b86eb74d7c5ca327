package configured

import (
	"context"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// freshListings are the listings of one vhost for changes. At most one runs, which has the turn. The next one waits for the
// turn, and callers can still join it.
type freshListings struct {
	turn chan struct{}
	next *freshListing
	// latest is the one that has the turn, or had it last.
	latest *freshListing
}

type freshListing struct {
	done      chan struct{}
	begun     time.Time
	vhost     topology.Vhost
	err       error
	cancelled bool
}

// Fresh reads a vhost for a change. The reading begins after the call, so it is as current as if each caller read for itself.
// Callers during a reading share the next one. The result must not be changed.
func (s *Provider) Fresh(ctx context.Context, vhost string) (topology.Vhost, error) {
	for {
		f, l, leads := s.join(vhost)
		if leads {
			s.lead(ctx, vhost, f, l)
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

// recently is the age of a listing that counts as recent. A fresh listing of thousands of objects is as old when it has been read and
// the write has had its turn.
const recently = time.Second

// Recent is Fresh, or a listing that began a moment ago. It serves many small changes, such as of policies, each of which would
// otherwise list the whole vhost. The listing can lack this process's last writes, so a caller must confirm with Fresh before it
// refuses. If this apply also changes pipelines or delayed exchanges, each call is Fresh.
func (s *Provider) Recent(ctx context.Context, vhost string) (topology.Vhost, error) {
	if latest := s.latest(vhost); latest != nil {
		select {
		case <-ctx.Done():
			return topology.Vhost{}, context.Cause(ctx)
		case <-latest.done:
		}
		if latest.err == nil {
			return latest.vhost, nil
		}
	}
	return s.Fresh(ctx, vhost)
}

// RecentForDelete is Recent for a deletion. If this apply also creates or changes something, which can begin to use the deleted object,
// each call is Fresh.
func (s *Provider) RecentForDelete(ctx context.Context, vhost string) (topology.Vhost, error) {
	s.mutex.Lock()
	adds := s.operation.adds
	s.mutex.Unlock()
	if adds {
		return s.Fresh(ctx, vhost)
	}
	return s.Recent(ctx, vhost)
}

// latest returns a listing that began a moment ago, or nil.
func (s *Provider) latest(vhost string) *freshListing {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f := s.fresh[vhost]
	if f == nil || f.latest == nil || s.operation.ownersWrite || time.Since(f.latest.begun) >= recently {
		return nil
	}
	return f.latest
}

// join returns the vhost's listings, the next one, and whether the caller must make it.
func (s *Provider) join(vhost string) (f *freshListings, next *freshListing, leads bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if f = s.fresh[vhost]; f == nil {
		f = &freshListings{turn: make(chan struct{}, 1)}
		s.fresh[vhost] = f
	}
	if leads = f.next == nil; leads {
		f.next = &freshListing{done: make(chan struct{})}
	}
	return f, f.next, leads
}

// lead waits for the turn, closes the listing to further callers, and then reads.
func (s *Provider) lead(ctx context.Context, vhost string, f *freshListings, l *freshListing) {
	defer close(l.done)
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
	}
	s.mutex.Lock()
	f.next = nil
	f.latest, l.begun = l, time.Now()
	s.mutex.Unlock()
	if l.err = ctx.Err(); l.err == nil {
		l.vhost, l.err = s.list(ctx, vhost)
	}
	l.cancelled = ctx.Err() != nil
}
