package drift

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// exchangeFaults are an exchange's faults. Exchanges are immutable, so each fault except the deletion re-creates the
// exchange.
func exchangeFaults(t topology.Topology, name string) []fault {
	object, want := "exchanges "+name, t.Exchanges[name]
	faults := []fault{{
		object: object, what: "deleted", goesWith: bindingsAt(t, "exchanges", name),
		change: mutation{delete: topology.Topology{Exchanges: map[string]topology.Exchange{name: want}}},
	}}
	remade := func(what, attribute string, e topology.Exchange) {
		faults = append(faults, fault{
			object: object, what: what, attributes: []string{attribute},
			change: mutation{remake: topology.Topology{Exchanges: map[string]topology.Exchange{name: e}}},
		})
	}
	otherType, transient, autoDelete, internal := want, want, want, want
	otherType.Type = opposites[want.Type]
	remade("type changed", "type", otherType)
	transient.Transient = true
	remade("transient", "type", transient)
	autoDelete.AutoDelete = true
	remade("auto-delete", "type", autoDelete)
	internal.Internal = true
	remade("internal", "type", internal)
	for _, a := range alterations(want.Arguments, "by-hand", "yes") {
		e := want
		e.Arguments = a.arguments
		remade(a.what, "arguments "+a.key, e)
	}
	return faults
}

// quorumOnly are arguments that classic queues refuse.
var quorumOnly = []string{"x-delivery-limit", "x-dead-letter-strategy"}

// queueFaults are a queue's faults. Queues are immutable, so each fault except the deletion re-creates the queue.
func queueFaults(t topology.Topology, name string) []fault {
	object, want := "queues "+name, t.Queues[name]
	faults := []fault{{
		object: object, what: "deleted", goesWith: bindingsAt(t, "queues", name),
		change: mutation{delete: topology.Topology{Queues: map[string]topology.Queue{name: want}}},
	}}
	remade := func(what string, q topology.Queue, attributes ...string) {
		faults = append(faults, fault{
			object: object, what: what, attributes: attributes,
			change: mutation{remake: topology.Topology{Queues: map[string]topology.Queue{name: q}}},
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

// ofOtherType is the queue with the other type, and the arguments that this type refuses.
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

// bindingFaults are a binding's faults. A binding has no identity apart from its attributes, so a changed binding is a
// missing one and a superfluous one.
func (s Subject) bindingFaults(b topology.Binding) []fault {
	object := "bindings " + b.String()
	only := func(b topology.Binding) topology.Topology { return topology.Topology{Bindings: []topology.Binding{b}} }
	faults := []fault{{object: object, what: "removed", change: mutation{delete: only(b)}}}
	remade := func(what string, other topology.Binding) {
		faults = append(faults, fault{
			object: object, what: what, goesWith: []string{"bindings " + other.String()},
			change: mutation{delete: only(b), remake: only(other)},
		})
	}
	added := func(what string, other topology.Binding) {
		faults = append(faults, fault{
			object: "bindings " + other.String(), what: what, change: mutation{remake: only(other)},
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
	second.Arguments = topology.Arguments{"by-hand": "too"}
	maps.Copy(second.Arguments, b.Arguments)
	added("a second one with other arguments", second)
	elsewhere.Destination = s.anotherEnd(b)
	added("one that leads to "+elsewhere.Destination+" too", elsewhere)
	return faults
}

// anotherEnd is another destination of bindings like this one.
func (s Subject) anotherEnd(b topology.Binding) string {
	var ends []string
	for _, other := range s.Wanted.Bindings {
		if other.ToExchange == b.ToExchange && s.Alike(other, b) {
			ends = append(ends, other.Destination)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	return ends[(slices.Index(ends, b.Destination)+1)%len(ends)]
}

// policyFaults are a policy's faults. Policies can be overwritten.
func (s Subject) policyFaults(name string) []fault {
	object, want := "policies "+name, s.Wanted.Policies[name]
	faults := []fault{{
		object: object, what: "deleted",
		change: mutation{delete: topology.Topology{Policies: map[string]topology.Policy{name: want}}},
	}}
	written := func(what, attribute string, p topology.Policy) {
		faults = append(faults, fault{
			object: object, what: what, attributes: []string{attribute},
			change: mutation{remake: topology.Topology{Policies: map[string]topology.Policy{name: p}}},
		})
	}
	pattern, applyTo, higher, lower := want, want, want, want
	pattern.Pattern = "^(nothing)$"
	written("pattern", "pattern", pattern)
	applyTo.ApplyTo = "all"
	written("apply-to", "apply_to", applyTo)
	higher.Priority += 7
	written("higher priority", "priority", higher)
	lower.Priority = 0
	written("lower priority", "priority", lower)
	for _, a := range alterations(want.Definition, "max-length-bytes", int64(1_000_000_000_000)) {
		p := want
		p.Definition = a.arguments
		written(a.what, "definition "+a.key, p)
	}
	if s.Twin == "" {
		return faults
	}
	return append(faults, fault{
		object: "policies " + s.Twin, what: "one too many, like " + name,
		change: mutation{remake: topology.Topology{Policies: map[string]topology.Policy{s.Twin: want}}},
	})
}
