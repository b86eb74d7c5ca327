package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// WithoutReleasedQueues returns the live objects without the work queues that the change from prior to next
// releases instead of deleting: those that are still attached, be it by an attachment, but no longer declared,
// and those that somebody else re-created, which do not carry the pipeline's mark. Next is nil for a destroy.
func WithoutReleasedQueues(live topology.Topology, prior Pipeline, next *Pipeline, vhost topology.Topology) topology.Topology {
	kept := live
	kept.Queues = maps.Clone(live.Queues)
	for name, before := range prior.WorkQueues {
		if !before.Declare {
			continue
		}
		attached, declared := false, false
		if next != nil {
			after, stays := next.WorkQueues[name]
			attached, declared = stays, after.Declare
		}
		attached = attached || slices.Contains(Attached(prior.Names(), vhost), name)
		foreign := kept.Queues[name].Arguments[DeclaredByArgument] != prior.Name
		if !declared && (attached || foreign) {
			delete(kept.Queues, name)
		}
	}
	return kept
}
