package drift

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// fault is a manual change to one of the objects.
type fault struct {
	// object is the object's kind and name, such as "queues orders.inbox", and what describes the change.
	object, what string
	// attributes are the object's attributes that the plan must show, and no others. It is empty if the object is missing or
	// superfluous.
	attributes []string
	// goesWith are objects that the plan also shows, since the broker deletes bindings together with a queue or an exchange.
	goesWith []string

	// The change on the broker.
	change mutation
}

// mutation has the objects to delete and the objects to create or overwrite, see [acctest.Remake]. If an object is only
// deleted, its bindings are deleted, too.
type mutation struct {
	delete, remake topology.Topology
}

// remakesQueue reports whether the repair must re-create a queue.
func (f fault) remakesQueue() bool { return len(f.change.remake.Queues) > 0 }

// affects reports whether one of two faults changes an object that the other one changes or needs.
func (f fault) affects(other fault) bool {
	mine, others := slices.Concat(f.goesWith, []string{f.object}), slices.Concat(other.goesWith, []string{other.object})
	shared := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(object string) bool { return slices.Contains(b, object) })
	}
	return shared(mine, others) || shared(mine, other.change.ends()) || shared(f.change.ends(), others)
}

// ends are the objects at the ends of changed bindings.
func (m mutation) ends() []string {
	var ends []string
	for _, b := range slices.Concat(m.delete.Bindings, m.remake.Bindings) {
		kind := "queues "
		if b.ToExchange {
			kind = "exchanges "
		}
		ends = append(ends, "exchanges "+b.Source, kind+b.Destination)
	}
	return ends
}

// faults generates every possible fault, one per object and attribute.
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

// altered is one variation of arguments.
type altered struct {
	what, key string
	arguments topology.Arguments
}

// alterations lists variations of arguments: each argument changed, of another type or removed, and one argument added.
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

// opposites map each word to another valid one.
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

// otherValues are another value of the same type, and the same value in another type.
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

// bindingsAt lists the bindings that the broker deletes with an exchange or a queue.
func bindingsAt(t topology.Topology, kind, name string) []string {
	var found []string
	for _, b := range t.Bindings {
		if endsAt(b, kind, name) {
			found = append(found, "bindings "+b.String())
		}
	}
	return found
}
