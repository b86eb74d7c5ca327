package pipeline

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Foreign holds the pipelines and policies of a vhost that belong to others.
type Foreign struct {
	// pipelines are the names of the other pipelines in the vhost, including those without a definition.
	pipelines []Names
	// returning maps each of their work queues to the pipelines that return messages to it.
	returning map[string][]QueueOwner
	// Policies belong to no pipeline, or remain from a deleted one.
	Policies map[string]topology.Policy
}

// ForeignTo finds the objects that belong to others than these pipelines.
func ForeignTo(vhost topology.Vhost, mine []string) Foreign {
	o, defined := Foreign{Policies: maps.Clone(vhost.Policies)}, map[string]bool{}
	for _, name := range Pipelines(vhost.Topology) {
		defined[name] = true
	}
	for _, name := range undefined(defined, vhost.Topology) {
		defined[name] = false
	}
	maps.DeleteFunc(o.Policies, func(name string, policy topology.Policy) bool {
		_, is := defined[OwnerOfPolicy(name, policy)]
		return is || slices.ContainsFunc(mine, func(m string) bool { return Names(m).NamesPolicy(name) })
	})
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		if !slices.Contains(mine, name) {
			o.pipelines = append(o.pipelines, Names(name))
		}
	}
	o.returning = returning(o.pipelines, defined, vhost.Topology)
	return o
}

// undefined lists pipelines that lost only their definition: they still have a policy, and a binding that returns
// messages to a queue. The remains of a deleted pipeline have no such binding.
func undefined(defined map[string]bool, vhost topology.Topology) []string {
	left := map[Names]bool{}
	for name, policy := range vhost.Policies {
		if of := OwnerOfPolicy(name, policy); of != "" && !defined[of] {
			left[Names(of)] = true
		}
	}
	var names []string
	for _, b := range vhost.Bindings {
		if of, returns := ReturnedBy(b); returns && left[of] {
			names = append(names, string(of))
		}
	}
	return names
}

// QueueOwner is a pipeline that has a queue.
type QueueOwner struct {
	Pipeline Names
	// AsWorkQueue says that the queue is a work queue of the pipeline. Otherwise only the pipeline's policy covers it.
	AsWorkQueue bool
	// TakesOverFrom is the pipeline that this one takes the work queue over from, or "".
	TakesOverFrom string
	// Undefined says that the pipeline lost its definition.
	Undefined bool
}

// returning finds the work queues of these pipelines, which are sorted, in one pass, because a vhost has many of both.
func returning(pipelines []Names, defined map[string]bool, vhost topology.Topology) map[string][]QueueOwner {
	found := map[string][]QueueOwner{}
	for _, b := range vhost.Bindings {
		name := AttachedBy(b)
		if _, is := slices.BinarySearch(pipelines, Names(name)); is {
			from, _ := takenOverFrom(b)
			found[b.Destination] = append(found[b.Destination], QueueOwner{
				Pipeline: Names(name), AsWorkQueue: true, TakesOverFrom: from, Undefined: !defined[name],
			})
		}
	}
	return found
}

// Pipelines lists the names of all pipelines with a definition, valid or not. The names are not empty: "" stands for no
// pipeline.
func Pipelines(vhost topology.Topology) []string {
	var names []string
	for _, b := range vhost.Bindings {
		if name := DefinedBy(b); name != "" {
			names = append(names, name)
		}
	}
	return topology.Distinct(names)
}

// OwnerOfPolicy returns the pipeline that a policy belongs to, or "". The dead-letter exchange must match as well as the
// name.
func OwnerOfPolicy(name string, policy topology.Policy) string {
	n, _, is := parsePolicyName(name)
	exchange, _ := policy.Definition["dead-letter-exchange"].(string)
	if is && slices.Contains(n.deadLetterExchanges(), exchange) {
		return string(n)
	}
	return ""
}

// OwnersOf returns the other pipelines that a queue belongs to, ordered by name. A pipeline is listed twice if it has
// the queue both as a work queue and by an attachment.
func (o Foreign) OwnersOf(queue string) []QueueOwner {
	for _, n := range o.pipelines {
		if n.CoversQueue(queue) {
			return []QueueOwner{{Pipeline: n}}
		}
	}
	owners := slices.Clone(o.returning[queue])
	slices.SortFunc(owners, func(a, b QueueOwner) int {
		return cmp.Or(cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.TakesOverFrom, b.TakesOverFrom))
	})
	return slices.Compact(owners)
}
