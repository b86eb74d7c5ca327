package retrypipeline_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// bindingFaults: a binding is nothing but its attributes, so a changed one is one that is missing and
// one too many.
func bindingFaults(t topology.Topology, b topology.Binding) []fault {
	object := "bindings " + b.String()
	faults := []fault{{object: object, what: "removed", change: mutation{unbind: []topology.Binding{b}}}}
	remade := func(what string, other topology.Binding) {
		faults = append(faults, fault{
			object: object, what: what, goesWith: []string{"bindings " + other.String()},
			change: mutation{unbind: []topology.Binding{b}, bind: []topology.Binding{other}},
		})
	}
	added := func(what string, other topology.Binding) {
		faults = append(faults, fault{
			object: "bindings " + other.String(), what: what, change: mutation{bind: []topology.Binding{other}},
		})
	}
	for _, a := range alterations(b.Arguments, "by-hand", "yes") {
		other := b
		other.Arguments = a.arguments
		remade(a.what, other)
	}
	otherKey, second, elsewhere := b, b, b
	otherKey.RoutingKey += ".other"
	remade("another key", otherKey)
	second.Arguments = maps.Clone(b.Arguments)
	if second.Arguments == nil {
		second.Arguments = topology.Arguments{}
	}
	second.Arguments["by-hand"] = "too"
	added("a second one with other arguments", second)
	elsewhere.Destination = anotherQueue(t, b)
	added("one that leads to "+elsewhere.Destination+" too", elsewhere)
	return faults
}

// anotherQueue is one of the pipeline's queues to which the exchange has no such binding: one of its own
// for one of its own, a work queue for a work queue.
func anotherQueue(t topology.Topology, b topology.Binding) string {
	returns := strings.HasPrefix(b.RoutingKey, pipeline.ReturnKeyPrefix)
	var queues []string
	for _, other := range t.Bindings {
		if strings.HasPrefix(other.RoutingKey, pipeline.ReturnKeyPrefix) == returns {
			queues = append(queues, other.Destination)
		}
	}
	slices.Sort(queues)
	return queues[(slices.Index(queues, b.Destination)+1)%len(queues)]
}
