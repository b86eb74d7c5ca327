package delayed

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Foreign lists the bindings of others from one of the exchanges, those included that an apply has deleted for a while.
func (n Names) Foreign(source string, vhost topology.Topology) []topology.Binding {
	return n.Notes().WithNoted(vhost, func(b topology.Binding) bool {
		return b.Source == source && !n.OwnsBinding(b)
	})
}

// BindingsThatGo lists the bindings of others that are deleted with the delayed exchange, since they begin or end at one of
// its exchanges, or end at one of its queues. It is not destroyed as long as there are some from the exchange that routes
// what is due, so those do not go.
func (e Exchange) BindingsThatGo(vhost topology.Topology) []topology.Binding {
	going := topology.Merge(e.Owned(vhost), topology.Topology{Exchanges: e.Expand().Exchanges}) // one that is missing has notes
	n := e.Names()
	return n.Notes().WithNoted(vhost, func(b topology.Binding) bool {
		return going.Meets(b) && b.Source != n.DeliverExchange() && !n.OwnsBinding(b)
	})
}

// RestoresDeadLetterRoute reports whether messages may be held in a level because they had no way to go, and have one again
// once what is missing is restored, or an exchange is re-created.
func (e Exchange) RestoresDeadLetterRoute(live topology.Topology) bool {
	changes := topology.Diff(e.Expand(), live)
	missing := changes.Create
	return len(missing.Exchanges)+len(missing.Queues)+len(missing.Bindings)+len(changes.Replace.Exchanges) > 0
}

// InterruptedCreation reports whether all that a vhost has of a new delayed exchange is what a creation makes before its
// definition, exactly as it would be made, and without a binding. It cannot be imported, and to go on from there takes
// nothing from anybody.
func (e Exchange) InterruptedCreation(vhost topology.Topology) bool {
	made := e.Identity()
	made.Bindings, made.Policies = nil, e.Guard()
	return topology.Untouched(e.Owned(vhost), made, vhost)
}

// AfterApply is the vhost as it will be once the delayed exchange is applied. Prior is what it was, nil if it is new.
func (e Exchange) AfterApply(prior *Exchange, vhost topology.Vhost) topology.Vhost {
	replaced := e.Owned(vhost.Topology)
	if prior != nil {
		replaced = topology.Merge(replaced, prior.Owned(vhost.Topology))
	}
	planned := vhost
	planned.Topology = topology.Merge(vhost.Without(replaced), e.Expand())
	return planned
}
