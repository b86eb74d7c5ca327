package delayed

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CatchAll is the unrouted queue.
func (e Exchange) CatchAll() string { return e.Names().UnroutedQueue() }

// Entrance is the exchange that applications publish to.
func (e Exchange) Entrance() string { return e.Names().Exchange() }

// Notes are those of its name.
func (e Exchange) Notes() stored.Notes { return e.Names().Notes() }

// ReturnsFrom is nothing: messages of a delayed exchange come back to nobody.
func (Exchange) ReturnsFrom(topology.Binding, topology.Topology) []string { return nil }

// FallsBack is false: a level has no queue to fall back to.
func (Exchange) FallsBack(topology.Binding) bool { return false }

// AttachedBy is "": a delayed exchange attaches no queues.
func (Exchange) AttachedBy(topology.Binding) string { return "" }

// ForceTakesBindings is false: messages that are due would be lost.
func (Exchange) ForceTakesBindings() bool { return false }

// SharedQueues are none.
func (Exchange) SharedQueues() []string { return nil }

// RetiredQueues are the queues of levels that the delays no longer need, and that still drain.
func (e Exchange) RetiredQueues() []string {
	var names []string
	for _, l := range e.Retired {
		names = append(names, e.Names().Level(l))
	}
	return names
}

// ReleasedQueues are none.
func (Exchange) ReleasedQueues(*Exchange, topology.Topology) []string { return nil }

// StayingFailedQueues are none.
func (Exchange) StayingFailedQueues(*Exchange, topology.Topology) map[string][]string { return nil }

// DetachedQueues are none.
func (Exchange) DetachedQueues(*Exchange, topology.Topology) []string { return nil }

// ReplacedBy reports whether a change makes Terraform replace the delayed exchange.
func (e Exchange) ReplacedBy(next Exchange) bool { return e.Name != next.Name || e.Vhost != next.Vhost }
