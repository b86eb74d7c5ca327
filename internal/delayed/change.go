package delayed

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Owner describes the delayed exchange to a change. Not even a forced removal takes the bindings of others, because due
// messages would be lost without them.
func (e Exchange) Owner() stored.Owner {
	n := e.Names()
	owner := stored.Owner{
		Identity: e.Identity(), Guard: e.Guard(), CatchAll: n.UnroutedQueue(), Entrance: n.Exchange(), Notes: n.Notes(),
	}
	for _, l := range e.Retired {
		owner.Retired = append(owner.Retired, n.Level(l))
	}
	return owner
}

// Effects are what a change or a destroy does, if next is nil.
func (e Exchange) Effects(next *Exchange, vhost topology.Topology) stored.Effects {
	if next == nil {
		return stored.Effects{Bindings: e.bindingsThatGo(vhost)}
	}
	return stored.Effects{RestoresRoute: e.restoresRoute(vhost)}
}

// Foreign lists other owners' bindings from one of the exchanges. It includes bindings that an apply deleted
// temporarily.
func (n Names) Foreign(source string, vhost topology.Topology) []topology.Binding {
	return n.Notes().WithNoted(vhost, func(b topology.Binding) bool {
		return b.Source == source && !n.OwnsBinding(b)
	})
}

// bindingsThatGo lists the bindings of others that the broker deletes with the delayed exchange's exchanges and queues.
// It leaves out bindings from the exchange that delivers due messages: while there are any, the delayed exchange is not
// destroyed.
func (e Exchange) bindingsThatGo(vhost topology.Topology) []topology.Binding {
	going := topology.Merge(e.Owned(vhost), topology.Topology{Exchanges: e.Expand().Exchanges}) // a missing exchange still has its notes
	n := e.Names()
	return n.Notes().WithNoted(vhost, func(b topology.Binding) bool {
		return going.Meets(b) && b.Source != n.DeliverExchange() && !n.OwnsBinding(b)
	})
}

// restoresRoute reports whether an apply restores a missing object or re-creates an exchange. Messages that
// were stuck in a level can then move again.
func (e Exchange) restoresRoute(live topology.Topology) bool {
	changes := topology.Diff(e.Expand(), live)
	missing := changes.Create
	return len(missing.Exchanges)+len(missing.Queues)+len(missing.Bindings)+len(changes.Replace.Exchanges) > 0
}

// InterruptedCreation reports whether the vhost holds only the objects that a creation makes before the definition,
// unchanged and without bindings. Such a delayed exchange cannot be imported, and a new creation can continue safely
// because the objects belong to no one else.
func (e Exchange) InterruptedCreation(vhost topology.Topology) bool {
	made := e.Identity()
	made.Bindings, made.Policies = nil, e.Guard()
	return topology.Untouched(e.Owned(vhost), made, vhost)
}

// AfterApply returns the vhost as it will be after the apply. If the delayed exchange is new, prior is nil.
func (e Exchange) AfterApply(prior *Exchange, vhost topology.Vhost) topology.Vhost {
	replaced := e.Owned(vhost.Topology)
	if prior != nil {
		replaced = topology.Merge(replaced, prior.Owned(vhost.Topology))
	}
	planned := vhost
	planned.Topology = topology.Merge(vhost.Without(replaced), e.Expand())
	return planned
}
