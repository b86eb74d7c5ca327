package delayed

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CatchAll returns the name of the unrouted queue.
func (e Exchange) CatchAll() string { return e.Names().UnroutedQueue() }

// Entrance returns the exchange that applications publish to.
func (e Exchange) Entrance() string { return e.Names().Exchange() }

// Notes returns the exchanges that keep the delayed exchange's notes.
func (e Exchange) Notes() stored.Notes { return e.Names().Notes() }

// ReturnsFrom returns nil: messages never come back to a delayed exchange.
func (Exchange) ReturnsFrom(topology.Binding, topology.Topology) []string { return nil }

// FallsBack returns false: a level has no queue to fall back to.
func (Exchange) FallsBack(topology.Binding) bool { return false }

// AttachedBy returns "": a delayed exchange attaches no queues.
func (Exchange) AttachedBy(topology.Binding) string { return "" }

// RestoresBindings returns false: bindings of others prevent the re-creation of a queue.
func (Exchange) RestoresBindings() bool { return false }

// ForceTakesBindings returns false: due messages would be lost without the bindings of others.
func (Exchange) ForceTakesBindings() bool { return false }

// SharedQueues returns nil: a delayed exchange shares no queues.
func (Exchange) SharedQueues() []string { return nil }

// RetiredQueues lists the queues of levels that no delay needs and that still drain.
func (e Exchange) RetiredQueues() []string {
	var names []string
	for _, l := range e.Retired {
		names = append(names, e.Names().Level(l))
	}
	return names
}

// ReleasedQueues returns nil: a delayed exchange has no work queues.
func (Exchange) ReleasedQueues(*Exchange, topology.Topology) []string { return nil }

// StayingFailedQueues returns nil: a delayed exchange has no failed queues.
func (Exchange) StayingFailedQueues(*Exchange, topology.Topology) map[string][]string { return nil }

// DetachedQueues returns nil: a delayed exchange attaches no queues.
func (Exchange) DetachedQueues(*Exchange, topology.Topology) []string { return nil }
