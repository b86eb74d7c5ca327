package configured

import (
	"maps"
	"slices"
	"sync"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Changes are changes of a vhost in this operation that a listing can lack.
type Changes struct {
	sync.Mutex
	all []func(*topology.Vhost)
}

// The names of changes in a vhost, which follows.
const (
	PlannedPolicies = "planned policies "
	PlannedObjects  = "planned objects "
	Written         = Lasting + "written "
)

// Changes returns the changes with a name. A write ends all but [Lasting] ones.
func (s *Provider) Changes(name string) *Changes {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	changes := s.operation.changes[name]
	if changes == nil {
		changes = &Changes{}
		s.operation.changes[name] = changes
	}
	return changes
}

// Now returns the changes so far.
func (c *Changes) Now() *Changes {
	c.Lock()
	defer c.Unlock()
	return &Changes{all: c.all}
}

// Add adds a change, and returns the earlier ones.
func (c *Changes) Add(change func(*topology.Vhost)) (earlier *Changes) {
	c.Lock()
	defer c.Unlock()
	earlier = &Changes{all: c.all}
	c.AddLocked(change)
	return earlier
}

// AddLocked adds a change. The caller has the lock.
func (c *Changes) AddLocked(change func(*topology.Vhost)) { c.all = append(c.all, change) }

// In returns a vhost after the changes, which change its maps in place. The caller has the lock, or the changes from Now or Add.
func (c *Changes) In(vhost topology.Vhost) topology.Vhost {
	if len(c.all) > 0 {
		vhost.Exchanges, vhost.Queues, vhost.Bindings = maps.Clone(vhost.Exchanges), maps.Clone(vhost.Queues), slices.Clip(vhost.Bindings)
		vhost.Policies, vhost.OperatorPolicies = maps.Clone(vhost.Policies), maps.Clone(vhost.OperatorPolicies)
	}
	for _, change := range c.all {
		change(&vhost)
	}
	return vhost
}
