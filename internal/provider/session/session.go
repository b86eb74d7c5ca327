// Package session holds what one configured provider knows while Terraform runs it.
package session

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Session is made by Configure and lives as long as the provider's process: one refresh and plan,
// or one apply. Its remembered listings serve reading and planning only; what writes asks the broker
// again (Fresh).
type Session struct {
	// Client is nil while the provider's configuration is not known yet.
	Client *broker.Client
	// Applier changes what Client reads.
	Applier *apply.Applier

	run run

	reached struct {
		once sync.Once
		user broker.User
		err  error
		told atomic.Bool
	}

	mutex    sync.Mutex
	listings map[string]*listing
	fresh    map[string]*freshListings
	wrote    atomic.Bool
	// list asks the broker.
	list func(ctx context.Context, vhost string) (topology.Vhost, error)
}

type listing struct {
	once  sync.Once
	vhost topology.Vhost
	index *pipeline.Index
	err   error
}

// New makes a session for the client, which is asked nothing yet. Times are those of its applier.
func New(client *broker.Client, times apply.Times) *Session {
	return &Session{
		Client: client, Applier: apply.New(client, times), list: client.List,
		listings: map[string]*listing{}, fresh: map[string]*freshListings{}, run: newRun(),
	}
}

// Unconnected makes a session for a provider whose configuration is not known yet.
func Unconnected() *Session { return New(nil, apply.DefaultTimes()) }

// Configured reports whether the provider's configuration is known.
func (s *Session) Configured() bool { return s.Client != nil }

// Reach asks the broker who the provider's user is, when it is first needed: what needs no broker works without one.
// The answer is that of the whole run. It needs a client.
func (s *Session) Reach(ctx context.Context) (broker.User, error) {
	s.reached.once.Do(func() { s.reached.user, s.reached.err = s.Client.User(ctx) })
	return s.reached.user, s.reached.err
}

// ToldUnreached reports whether a plan has said before that the broker cannot be reached, and remembers it: once is
// enough for all resources of a run.
func (s *Session) ToldUnreached() bool { return s.reached.told.Swap(true) }

// Listing reads a vhost once and answers from memory afterwards. The answer is shared: it must not
// be changed.
func (s *Session) Listing(ctx context.Context, vhost string) (topology.Vhost, error) {
	l := s.listing(ctx, vhost)
	return l.vhost, l.err
}

// Near is what of the same listing can matter to these pipelines and work queues, see [pipeline.Index.Near].
func (s *Session) Near(ctx context.Context, vhost string, pipelines, workQueues []string) (topology.Vhost, error) {
	l := s.listing(ctx, vhost)
	if l.err != nil {
		return topology.Vhost{}, l.err
	}
	return l.index.Near(pipelines, workQueues), nil
}

func (s *Session) listing(ctx context.Context, vhost string) *listing {
	s.mutex.Lock()
	l := s.listings[vhost]
	if l == nil {
		l = &listing{}
		s.listings[vhost] = l
	}
	s.mutex.Unlock()
	l.once.Do(func() {
		l.vhost, l.err = s.list(ctx, vhost)
		l.index = pipeline.NewIndex(l.vhost)
	})
	return l
}

// MarkWritten notes that the broker is being changed, which makes what was listed before stale.
func (s *Session) MarkWritten() { s.wrote.Store(true) }

// HasWritten reports whether listings may be older than this run's own writes.
func (s *Session) HasWritten() bool { return s.wrote.Load() }
