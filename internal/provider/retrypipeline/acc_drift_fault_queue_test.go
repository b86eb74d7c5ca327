package retrypipeline_test

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// quorumOnly are arguments that classic queues refuse.
var quorumOnly = []string{"x-delivery-limit", "x-dead-letter-strategy"}

// queueFaults: a queue is immutable, so each of them but the first is re-created.
func queueFaults(t topology.Topology, name string) []fault {
	object, want := "queues "+name, t.Queues[name]
	faults := []fault{{
		object: object, what: "deleted", goesWith: bindingsAt(t, name, false),
		change: mutation{delete: topology.Topology{Queues: map[string]topology.Queue{name: want}}},
	}}
	remade := func(what string, q topology.Queue, attributes ...string) {
		faults = append(faults, fault{
			object: object, what: what, attributes: attributes,
			change: mutation{queue: map[string]topology.Queue{name: q}},
		})
	}
	otherType, lost := ofOtherType(want)
	remade("type changed", otherType, append(lost, "type")...)
	transient, autoDelete := want, want
	transient.Transient = true
	remade("transient", transient, "type")
	autoDelete.AutoDelete = true
	remade("auto-delete", autoDelete, "type")
	for _, a := range alterations(want.Arguments, "x-by-hand", "yes") {
		q := want
		q.Arguments = a.arguments
		remade(a.what, q, "arguments "+a.key)
	}
	return faults
}

// ofOtherType is the queue as one of the other type, and the arguments that this one does not take.
func ofOtherType(q topology.Queue) (other topology.Queue, lost []string) {
	other = topology.Queue{Type: opposites[q.Type], Arguments: maps.Clone(q.Arguments)}
	if other.Type == topology.Quorum {
		return other, nil
	}
	maps.DeleteFunc(other.Arguments, func(key string, _ any) bool {
		if slices.Contains(quorumOnly, key) {
			lost = append(lost, "arguments "+key)
			return true
		}
		return false
	})
	return other, lost
}
