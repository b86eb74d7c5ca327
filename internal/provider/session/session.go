// Package session holds what one configured provider knows while Terraform runs it.
package session

import (
	"context"
	"slices"
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

	mutex    sync.Mutex
	listings map[string]*listing
	planned  map[[2]string]bool
	leaving  map[string][]string
	fresh    map[string]*freshListings
	claims   map[[2]string]string
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
		listings: map[string]*listing{}, planned: map[[2]string]bool{}, leaving: map[string][]string{}, fresh: map[string]*freshListings{}, claims: map[[2]string]string{},
	}
}

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

// PlannedBefore tells whether a resource of this name was planned in this run already, and
// remembers it.
func (s *Session) PlannedBefore(vhost, name string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := [2]string{vhost, name}
	before := s.planned[key]
	s.planned[key] = true
	return before
}

// Plans tells whether a pipeline of this name was planned in this run.
func (s *Session) Plans(vhost, name string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.planned[[2]string{vhost, name}]
}

// Claim notes that a pipeline is planned to have a work queue. It returns the other pipeline that has
// been planned to have it in this run, "" if there is none.
func (s *Session) Claim(vhost, queue, pipeline string) (other string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := [2]string{vhost, queue}
	if claimed, is := s.claims[key]; is && claimed != pipeline {
		return claimed
	}
	s.claims[key] = pipeline
	return ""
}

// Leaves notes that a pipeline is planned to be removed.
func (s *Session) Leaves(vhost, name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.leaving[vhost] = append(s.leaving[vhost], name)
}

// Leaving lists the pipelines of a vhost that are known to be removed in this run.
func (s *Session) Leaving(vhost string) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.leaving[vhost])
}

// Writing notes that the broker is being changed, which makes what was listed before stale.
func (s *Session) Writing() { s.wrote.Store(true) }

// Stale tells whether listings may be older than this run's own writes.
func (s *Session) Stale() bool { return s.wrote.Load() }
