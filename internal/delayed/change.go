package delayed

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Foreign lists the bindings of others from one of the exchanges, those included that an apply has deleted for a while.
func (n Names) Foreign(source string, vhost topology.Topology) []topology.Binding {
	return stored.WithNoted(vhost, n.Noted, func(b topology.Binding) bool {
		return b.Source == source && !n.OwnsBinding(b)
	})
}

// BindingsThatGo lists the bindings of others that are deleted with the delayed exchange, since they begin or end at one of
// its exchanges, or end at one of its queues. It is not destroyed as long as there are some from the exchange that routes
// what is due, so those do not go.
func BindingsThatGo(e Exchange, vhost topology.Topology) []topology.Binding {
	going := topology.Merge(Owned(e, vhost), topology.Topology{Exchanges: Expand(e).Exchanges}) // one that is missing has notes
	n := e.Names()
	return stored.WithNoted(vhost, n.Noted, func(b topology.Binding) bool {
		return going.Meets(b) && b.Source != n.DeliverExchange() && !n.OwnsBinding(b)
	})
}

// RestoresDeadLetterRoute reports whether messages may be held in a level because they had no way to go, and have one again
// once what is missing is restored, or an exchange is re-created.
func RestoresDeadLetterRoute(e Exchange, live topology.Topology) bool {
	changes := topology.Diff(Expand(e), live)
	missing := changes.Create
	return len(missing.Exchanges)+len(missing.Queues)+len(missing.Bindings)+len(changes.Replace.Exchanges) > 0
}

// InterruptedCreation reports whether all that a vhost has of a new delayed exchange is what a creation makes before its
// definition, exactly as it would be made, and without a binding. It cannot be imported, and to go on from there takes
// nothing from anybody.
func InterruptedCreation(e Exchange, vhost topology.Topology) bool {
	made := Identity(e)
	made.Bindings, made.Policies = nil, Guard(e)
	return topology.Untouched(Owned(e, vhost), made, vhost)
}

// AfterApply is the vhost as it will be once the delayed exchange is applied. Prior is what it was, nil if it is new.
func AfterApply(e Exchange, prior *Exchange, vhost topology.Vhost) topology.Vhost {
	replaced := Owned(e, vhost.Topology)
	if prior != nil {
		replaced = topology.Merge(replaced, Owned(*prior, vhost.Topology))
	}
	planned := vhost
	planned.Topology = topology.Merge(vhost.Without(replaced), Expand(e))
	return planned
}
