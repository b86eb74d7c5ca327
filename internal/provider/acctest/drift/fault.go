package drift

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// fault is one thing that a human changed by hand in one of the objects.
type fault struct {
	// object is the kind and the name of the object, as in "queues orders.inbox"; what was changed
	// of it is in what.
	object, what string
	// attributes of the object are what the plan must show, and no others of it, unless the object
	// is gone or there is one too many.
	attributes []string
	// goesWith are the objects that the plan shows as well, since the broker deletes them together
	// with the object: a deleted queue or exchange takes its bindings along.
	goesWith []string

	// What is done to the broker.
	change mutation
}

// mutation is what the broker has instead of what it had: see [acctest.Remake]. Where an object is deleted for good, its bindings
// die with it.
type mutation struct {
	delete, remake topology.Topology
}

// remakesQueue reports whether a queue would have to be re-created to repair it.
func (f fault) remakesQueue() bool { return len(f.change.remake.Queues) > 0 }

// faults generates every fault that the objects can have, one per object and attribute.
func (s Subject) faults() []fault {
	t := s.Wanted
	var faults []fault
	for _, name := range slices.Sorted(maps.Keys(t.Exchanges)) {
		faults = append(faults, exchangeFaults(t, name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Queues)) {
		faults = append(faults, queueFaults(t, name)...)
	}
	for _, b := range t.Bindings {
		faults = append(faults, s.bindingFaults(b)...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Policies)) {
		faults = append(faults, s.policyFaults(name)...)
	}
	return faults
}

// altered is one of the ways in which arguments can differ.
type altered struct {
	what, key string
	arguments topology.Arguments
}

// alterations lists every way in which arguments can differ: each of them changed, of another type
// and removed, and one too many.
func alterations(arguments topology.Arguments, extra string, extraValue any) []altered {
	var all []altered
	for _, key := range slices.Sorted(maps.Keys(arguments)) {
		for _, value := range otherValues(arguments[key]) {
			changed := maps.Clone(arguments)
			changed[key] = value.value
			all = append(all, altered{key + " " + value.what, key, changed})
		}
		removed := maps.Clone(arguments)
		delete(removed, key)
		all = append(all, altered{key + " removed", key, removed})
	}
	added := topology.Arguments{extra: extraValue}
	maps.Copy(added, arguments)
	return append(all, altered{extra + " added", extra, added})
}

type otherValue struct {
	what  string
	value any
}

// opposites are the other words of arguments that take one of two.
var opposites = map[string]string{
	"reject-publish":     "drop-head",
	"drop-head":          "reject-publish",
	topology.AtLeastOnce: topology.AtMostOnce,
	topology.AtMostOnce:  topology.AtLeastOnce,
	topology.Quorum:      topology.Classic,
	topology.Classic:     topology.Quorum,
	"fanout":             "topic",
	"direct":             "fanout",
	"topic":              "headers",
	"headers":            "topic",
}

// otherValues are another value of the same type, and the same value as another type.
func otherValues(value any) []otherValue {
	switch v := value.(type) {
	case string:
		return []otherValue{{"changed", cmp.Or(opposites[v], v+".other")}, {"of another type", int64(7)}}
	case int64:
		return []otherValue{{"changed", v + 1}, {"of another type", strconv.FormatInt(v, 10)}}
	case bool:
		return []otherValue{{"changed", !v}, {"of another type", strconv.FormatBool(v)}}
	case map[string]any:
		return []otherValue{{"changed", map[string]any{"by": "hand"}}, {"of another type", "table"}}
	default:
		return []otherValue{{"of another type", "by hand"}}
	}
}

// bindingsAt lists the bindings that die with an exchange or a queue.
func bindingsAt(t topology.Topology, kind, name string) []string {
	var found []string
	for _, b := range t.Bindings {
		if endsAt(b, kind, name) {
			found = append(found, "bindings "+b.String())
		}
	}
	return found
}
