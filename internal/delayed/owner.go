package delayed

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Owner describes the delayed exchange to a change. Not even a forced removal takes the bindings of others, because due
// messages would be lost without them.
func (e Exchange) Owner() stored.Owner {
	n := e.Names()
	return stored.Owner{
		Identity: e.Identity(), Guard: e.Guard(), Retired: e.retiredQueues(),
		CatchAll: n.UnroutedQueue(), Entrance: n.Exchange(), Notes: n.Notes(),
	}
}

// retiredQueues lists the queues of levels that no delay needs and that still drain.
func (e Exchange) retiredQueues() []string {
	var names []string
	for _, l := range e.Retired {
		names = append(names, e.Names().Level(l))
	}
	return names
}

// Effects are what a change or a destroy does, if next is nil.
func (e Exchange) Effects(next *Exchange, vhost topology.Topology) stored.Effects {
	if next == nil {
		return stored.Effects{Bindings: e.bindingsThatGo(vhost)}
	}
	return stored.Effects{RestoresRoute: e.restoresRoute(vhost)}
}
