package pipeline

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"

// InterruptedCreation reports whether all that a vhost has of a new pipeline is what a creation makes before its
// definition, exactly as it would be made, and without a binding. It cannot be imported, and to go on from there
// takes nothing from anybody.
func InterruptedCreation(p Pipeline, vhost topology.Topology) bool {
	made := Identity(p)
	made.Bindings, made.Policies = nil, Guard(p)
	return topology.Untouched(Owned(p, vhost), made, vhost)
}
