package topology

import (
	"cmp"
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
	var rest []Binding
	leading := map[string][]Binding{} // by destination, because a pipeline can have many bindings
	for _, binding := range without {
		leading[binding.Destination] = append(leading[binding.Destination], binding)
	}
	for _, binding := range from {
		if !slices.ContainsFunc(leading[binding.Destination], binding.Equal) {
			rest = append(rest, binding)
		}
	}
	return rest
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

// SortBindings sorts bindings by their text.
func SortBindings(bindings []Binding) {
	Sort(bindings, func(a, b *Binding) int { return cmp.Compare(a.String(), b.String()) })
}

// Merge joins two sets of objects read from the same vhost.
func Merge(a, b Topology) Topology {
	merged := New()
	for _, t := range []Topology{a, b} {
		maps.Copy(merged.Exchanges, t.Exchanges)
		maps.Copy(merged.Queues, t.Queues)
		maps.Copy(merged.Policies, t.Policies)
	}
	merged.Bindings = append(slices.Clone(a.Bindings), bindingsWithout(b.Bindings, a.Bindings)...)
	return merged
}

// Without returns the objects that the other set does not have.
func (t Topology) Without(other Topology) Topology { return Diff(other, t).Delete }
