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
	// User is who the provider is to the broker.
	User broker.User

	run run

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

// New makes a session for the client. Times are those of its applier.
func New(client *broker.Client, user broker.User, times apply.Times) *Session {
	return &Session{
		Client: client, Applier: apply.New(client, times), User: user, list: client.List,
		listings: map[string]*listing{}, fresh: map[string]*freshListings{}, run: newRun(),
	}
}

// Unconnected makes a session for a provider whose configuration is not known yet.
func Unconnected() *Session { return New(nil, broker.User{}, apply.DefaultTimes()) }

// Connected reports whether the broker can be asked. Every use of Client asks here first, so a session
// that connects when it is first needed would do so here.
func (s *Session) Connected() bool { return s.Client != nil }

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
