package pipeline

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// InterruptedCreation reports whether all that a vhost has of a new pipeline is what a creation makes before its
// definition, exactly as it would be made, and without a binding. It cannot be imported, and to go on from there
// takes nothing from anybody.
func InterruptedCreation(p Pipeline, vhost topology.Topology) bool {
	owned := Owned(p, vhost)
	made := Identity(p)
	made.Bindings, made.Policies = nil, Guard(p)
	changes := topology.Diff(owned, made)
	isOwn := func(b topology.Binding) bool {
		_, fromOwn := owned.Exchanges[b.Source]
		_, toQueue := owned.Queues[b.Destination]
		_, toExchange := owned.Exchanges[b.Destination]
		return fromOwn || b.Source != "" && (b.ToExchange && toExchange || !b.ToExchange && toQueue)
	}
	return !owned.Empty() && changes.Create.Empty() && changes.Replace.Empty() && changes.Update.Empty() &&
		!slices.ContainsFunc(vhost.Bindings, isOwn)
}
