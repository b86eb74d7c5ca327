package topology

import (
	"maps"
	"reflect"
	"slices"
)

// Changes turn the objects of a broker into the wanted objects.
type Changes struct {
	// Create has wanted objects that are missing.
	Create Topology
	// Replace has exchanges and queues whose properties differ and cannot be changed on the broker.
	Replace Topology
	// Update has policies whose properties differ, which the broker can overwrite.
	Update Topology
	// Delete has existing objects that are not wanted.
	Delete Topology
}

// Empty reports whether there are no changes.
func (c Changes) Empty() bool {
	return c.Create.Empty() && c.Replace.Empty() && c.Update.Empty() && c.Delete.Empty()
}

// Diff returns the changes from live to wanted.
func Diff(wanted, live Topology) Changes {
	c := Changes{Create: New(), Replace: New(), Update: New(), Delete: New()}
	diffMap(wanted.Exchanges, live.Exchanges, c.Create.Exchanges, c.Replace.Exchanges, c.Delete.Exchanges, Exchange.Equal)
	diffMap(wanted.Queues, live.Queues, c.Create.Queues, c.Replace.Queues, c.Delete.Queues, Queue.Equal)
	diffMap(wanted.Policies, live.Policies, c.Create.Policies, c.Update.Policies, c.Delete.Policies, Policy.Equal)
	c.Create.Bindings = bindingsWithout(wanted.Bindings, live.Bindings)
	c.Delete.Bindings = bindingsWithout(live.Bindings, wanted.Bindings)
	return c
}

func diffMap[T any](wanted, live, missing, different, extra map[string]T, equal func(T, T) bool) {
	for name, want := range wanted {
		have, exists := live[name]
		switch {
		case !exists:
			missing[name] = want
		case !equal(want, have):
			different[name] = want
		}
	}
	for name, have := range live {
		if _, isWanted := wanted[name]; !isWanted {
			extra[name] = have
		}
	}
}

func bindingsWithout(from, without []Binding) []Binding {
	fewer := from
	if len(without) < len(from) {
		fewer = without
	}
	concerned := map[string]bool{} // the other side can be a large vhost
	for _, binding := range fewer {
		concerned[binding.Destination] = true
	}
	leading := map[string][]Binding{} // by destination, because a pipeline can have many bindings
	for _, binding := range without {
		if concerned[binding.Destination] {
			leading[binding.Destination] = append(leading[binding.Destination], binding)
		}
	}
	return slices.DeleteFunc(slices.Clone(from), func(binding Binding) bool {
		return slices.ContainsFunc(leading[binding.Destination], binding.Equal)
	})
}

// Equal reports whether two exchanges are the same.
func (e Exchange) Equal(other Exchange) bool {
	return e.Type == other.Type && e.Transient == other.Transient && e.AutoDelete == other.AutoDelete &&
		e.Internal == other.Internal && e.Arguments.Equal(other.Arguments)
}

// Equal reports whether two queues are the same.
func (q Queue) Equal(other Queue) bool {
	return q.Type == other.Type && q.Transient == other.Transient && q.AutoDelete == other.AutoDelete &&
		q.Exclusive == other.Exclusive && q.Arguments.Equal(other.Arguments)
}

// Equal reports whether two policies are the same.
func (p Policy) Equal(other Policy) bool {
	return p.Pattern == other.Pattern && p.ApplyTo == other.ApplyTo && p.Priority == other.Priority &&
		p.Definition.Equal(other.Definition)
}

// Equal reports whether two bindings are the same, regardless of the broker's properties key.
func (b Binding) Equal(other Binding) bool {
	return b.Source == other.Source && b.Destination == other.Destination && b.ToExchange == other.ToExchange &&
		b.RoutingKey == other.RoutingKey && b.Arguments.Equal(other.Arguments)
}

// Equal reports whether two sets of arguments are the same. Nil equals an empty set.
func (a Arguments) Equal(other Arguments) bool {
	return len(a) == len(other) && (len(a) == 0 || reflect.DeepEqual(a, other))
}

// Merge joins two sets of objects read from the same vhost.
func Merge(a, b Topology) Topology {
	merged := a.Clone()
	maps.Copy(merged.Exchanges, b.Exchanges)
	maps.Copy(merged.Queues, b.Queues)
	maps.Copy(merged.Policies, b.Policies)
	merged.Bindings = append(merged.Bindings, bindingsWithout(b.Bindings, a.Bindings)...)
	return merged
}

// Clone returns a topology whose maps and list of bindings can be changed.
func (t Topology) Clone() Topology {
	return Topology{changeable(t.Exchanges), changeable(t.Queues), slices.Clone(t.Bindings), changeable(t.Policies)}
}

func changeable[T any](objects map[string]T) map[string]T {
	if objects == nil {
		return map[string]T{}
	}
	return maps.Clone(objects)
}

// Without returns the objects that the other set does not have.
func (t Topology) Without(other Topology) Topology {
	rest := t.Clone()
	drop(rest.Exchanges, other.Exchanges)
	drop(rest.Queues, other.Queues)
	drop(rest.Policies, other.Policies)
	rest.Bindings = bindingsWithout(t.Bindings, other.Bindings)
	return rest
}

func drop[T any](from, names map[string]T) {
	for name := range names {
		delete(from, name)
	}
}
