package configured

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Kind is a kind of resource.
type Kind string

// The kinds, as messages name them.
const (
	Pipeline           Kind = "pipeline"
	Attachment         Kind = "attachment"
	DelayedExchange    Kind = "delayed exchange"
	Exchange           Kind = "exchange"
	Queue              Kind = "queue"
	Binding            Kind = "binding"
	Policy             Kind = "policy"
	OperatorPolicy     Kind = "operator policy"
	Vhost              Kind = "virtual host"
	User               Kind = "user"
	Permissions        Kind = "permissions"
	TopicPermissions   Kind = "topic permissions"
	Parameter          Kind = "parameter"
	Shovel             Kind = "shovel"
	FederationUpstream Kind = "federation upstream"
)

// Key identifies a resource.
type Key struct {
	Kind        Kind
	Vhost, Name string
}

// operation is one refresh and plan, or one apply. Up to Terraform 1.14, each operation has its own process. Since 1.15,
// `terraform test` runs all operations of a file in one process without marking where one ends.
type operation struct {
	begun                        time.Time
	refreshed, planned, lookedUp map[Key]bool
	// plannedBefore has what the operation before has planned, none if that was in another process. If this is an apply, it plans
	// nothing else.
	plannedBefore map[Key]bool

	going      map[Key][]string
	remembered map[string]*remembered
	changes    map[string]*Changes
	claimed    map[string]string
	wrote      bool
	// ownersWrite says that a resource that owns many objects is being changed.
	ownersWrite bool
	// found has the names of exchanges, queues and policies, by vhost, that were there before the first write.
	found map[string]map[Key]bool
	// adds says that the apply has begun to create or change something.
	adds bool
	told map[string]bool
}

func newOperation() *operation {
	return &operation{
		begun:     time.Now(),
		refreshed: map[Key]bool{}, planned: map[Key]bool{}, lookedUp: map[Key]bool{},
		going: map[Key][]string{}, remembered: map[string]*remembered{}, changes: map[string]*Changes{}, claimed: map[string]string{},
		found: map[string]map[Key]bool{}, told: map[string]bool{},
	}
}

// remembered is an answer that serves one operation.
type remembered struct {
	once  sync.Once
	value any
	err   error
}

// Lasting begins the names of answers that a write does not make outdated.
const Lasting = "lasting "

// Once asks the broker once per operation, until a write, and remembers the answer under a name. An error is not remembered.
func Once[T any](ctx context.Context, s *Provider, name string, ask func(context.Context) (T, error)) (T, error) {
	s.mutex.Lock()
	of := s.operation
	r := of.remembered[name]
	if r == nil {
		r = &remembered{}
		of.remembered[name] = r
	}
	s.mutex.Unlock()
	r.once.Do(func() {
		if r.value, r.err = ask(ctx); r.err != nil {
			s.mutex.Lock()
			delete(of.remembered, name)
			s.mutex.Unlock()
		}
	})
	value, _ := r.value.(T)
	return value, r.err
}

// Call notes the beginning of a call from Terraform. The caller must call the returned function at the end.
func (s *Provider) Call() (ended func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.underWay++
	return func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.underWay--
		s.ended++
	}
}

// AwaitAnother waits until another call has ended, which can have removed what stands in the way of this one. It reports false if there
// is none: the time is over, nothing else has been under way for a while, or so many calls wait that others could not begin. Terraform
// makes ten calls at a time by default.
func (s *Provider) AwaitAnother(ctx context.Context, until time.Time) (another bool) {
	const atOnce, poll, quiet = 9, 500 * time.Millisecond, 3 * time.Second
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.waiting >= atOnce {
		return false
	}
	s.waiting++
	defer func() { s.waiting-- }()
	before, busy := s.ended, time.Now()
	for s.ended == before {
		if s.underWay > s.waiting {
			busy = time.Now()
		}
		if time.Since(busy) > quiet || time.Now().After(until) || ctx.Err() != nil {
			return false
		}
		s.mutex.Unlock()
		time.Sleep(poll)
		s.mutex.Lock()
	}
	return true
}

// Refreshes notes that a resource is refreshed. Within an operation, Terraform refreshes a resource once, and never after a
// write.
func (s *Provider) Refreshes(key Key) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.operation.wrote || s.operation.refreshed[key] {
		s.operation = newOperation()
	}
	s.operation.refreshed[key] = true
	clear(s.turns)
}

// Plans notes that a resource is planned. Within an operation, Terraform plans a resource once, apart from the creation of a
// replacement. An apply plans what it is about to write.
func (s *Provider) Plans(key Key) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	o := s.operation
	another := len(o.refreshed) > 0 || len(o.plannedBefore) > 0 && !o.plannedBefore[key]
	if o.planned[key] || o.wrote && another {
		s.operation = newOperation()
		s.operation.plannedBefore = o.planned
	}
	s.operation.planned[key] = true
}

// LooksUp notes that a data source reads an object, once in an operation. During an apply, each reads what the apply has done so far.
// If two data sources read one object, the second costs another listing.
func (s *Provider) LooksUp(key Key) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.operation.wrote || s.operation.lookedUp[key] {
		s.operation.forget()
	}
	s.operation.lookedUp[key] = true
}

// HasPlanned reports whether a resource was planned in this operation. Only warnings and errors depend on it.
func (s *Provider) HasPlanned(key Key) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.operation.planned[key]
}

// Goes notes what an operation takes from a queue, such as bindings, and returns all that was noted for it. If two owners leave a queue at
// the same time, each still finds the other's policy on the broker. Only texts of warnings and errors depend on it.
func (s *Provider) Goes(what Kind, vhost, queue string, names ...string) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := Key{what, vhost, queue}
	s.operation.going[key] = topology.Distinct(slices.Concat(s.operation.going[key], names))
	return s.operation.going[key]
}

// Claims notes who or what a plan sets something to, and returns what the first plan of this operation has noted.
func (s *Provider) Claims(what, by string) (first string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if first, claimed := s.operation.claimed[what]; claimed {
		return first
	}
	s.operation.claimed[what] = by
	return by
}

// Fate is what a plan does with an object at one address.
type Fate string

// All fates. Gone means that the broker does not have the object, whatever else is planned.
const (
	Gone      Fate = "gone"
	Created   Fate = "created or imported"
	Destroyed Fate = "destroyed"
)

// Fate notes what a plan does with an object, and returns what was noted first since the last write.
func (s *Provider) Fate(key Key, fate Fate) (first Fate) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if first, noted := s.fates[key]; noted && fate != Gone {
		return first
	}
	s.fates[key] = fate
	return fate
}

// MarkWritten notes that a kind of resource is changing the broker, so earlier listings are outdated.
func (s *Provider) MarkWritten(by Kind, deletes bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.operation.wrote = true
	s.operation.adds = s.operation.adds || !deletes
	owner := slices.Contains([]Kind{Pipeline, Attachment, DelayedExchange}, by)
	s.operation.ownersWrite = s.operation.ownersWrite || owner
	clear(s.fates)
	maps.DeleteFunc(s.operation.changes, func(name string, _ *Changes) bool { return !strings.HasPrefix(name, Lasting) })
	s.operation.forget()
}

// forget drops what the broker has answered.
func (o *operation) forget() {
	clear(o.lookedUp)
	maps.DeleteFunc(o.remembered, func(name string, _ *remembered) bool { return !strings.HasPrefix(name, Lasting) })
}

// Found notes what a vhost has before the first write.
func (s *Provider) Found(vhost string, all topology.Vhost, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, known := s.operation.found[vhost]; known || err != nil && !broker.IsNotFound(err) {
		return
	}
	found := map[Key]bool{}
	add := func(kind Kind, names iter.Seq[string]) {
		for name := range names {
			found[Key{kind, vhost, name}] = true
		}
	}
	add(Exchange, maps.Keys(all.Exchanges))
	add(Queue, maps.Keys(all.Queues))
	add(Policy, maps.Keys(all.Policies))
	add(OperatorPolicy, maps.Keys(all.OperatorPolicies))
	s.operation.found[vhost] = found
}

// WasAbsent reports whether an object is known to have been absent before the first write.
func (s *Provider) WasAbsent(kind Kind, vhost, name string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found, known := s.operation.found[vhost]
	return known && !found[Key{kind, vhost, name}]
}

// AwaitCounts waits until this operation is as old as the lag, so that statistics show what was on the broker before. It reports whether
// it has waited.
func (s *Provider) AwaitCounts(ctx context.Context, lag time.Duration) (waited bool, err error) {
	s.mutex.Lock()
	wait := time.Until(s.operation.begun.Add(lag))
	s.mutex.Unlock()
	return wait > 0, pause(ctx, wait)
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}

// HasWritten reports whether this operation is an apply that has begun to write.
func (s *Provider) HasWritten() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.operation.wrote
}

// Told reports whether this operation has already given a message, and remembers it. One message is enough for all resources.
func (s *Provider) Told(what string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	told := s.operation.told[what]
	s.operation.told[what] = true
	return told
}
