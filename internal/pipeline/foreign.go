package pipeline

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Foreign is what belongs to somebody else than the pipeline in question.
type Foreign struct {
	// pipelines are the names of the other pipelines in the vhost, those without a definition included.
	pipelines []Names
	// returning are their work queues, each with the pipelines that messages return to it from.
	returning map[string][]Owner
	// Policies are those of no pipeline, and those that a pipeline without a definition has left.
	Policies map[string]topology.Policy
}

// ForeignTo finds what belongs to others than these pipelines.
func ForeignTo(vhost topology.Vhost, mine []string) Foreign {
	o, defined := Foreign{Policies: maps.Clone(vhost.Policies)}, map[string]bool{}
	for _, name := range Pipelines(vhost.Topology) {
		defined[name] = true
	}
	for _, name := range undefined(defined, vhost.Topology) {
		defined[name] = false
	}
	maps.DeleteFunc(o.Policies, func(name string, policy topology.Policy) bool {
		_, is := defined[ofPipeline(name, policy)]
		return is || slices.ContainsFunc(mine, func(m string) bool { return Names(m).namesPolicy(name) })
	})
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		if !slices.Contains(mine, name) {
			o.pipelines = append(o.pipelines, Names(name))
		}
	}
	o.returning = returning(o.pipelines, defined, vhost.Topology)
	return o
}

// undefined lists pipelines whose definition is gone, and nothing else: one of their policies is there, and they return
// messages to a queue. What is left of a pipeline that was deleted has no such binding.
func undefined(defined map[string]bool, vhost topology.Topology) []string {
	left := map[string]string{}
	for name, policy := range vhost.Policies {
		if of := ofPipeline(name, policy); of != "" && !defined[of] {
			left[Names(of).ReturnExchange()] = of
		}
	}
	var names []string
	for _, b := range vhost.Bindings {
		if of, is := left[b.Source]; is && b.RoutingKey == ReturnKey(b.Destination) {
			names = append(names, of)
		}
	}
	return names
}

// Owner is a pipeline that has a queue.
type Owner struct {
	Pipeline Names
	// AsWorkQueue says that the queue is one of its work queues, rather than one that its policy covers.
	AsWorkQueue bool
	// TakesOverFrom is the pipeline that it takes the work queue over from, "" if none.
	TakesOverFrom string
	// Undefined says that its definition is gone.
	Undefined bool
}

// returning finds the work queues of these pipelines, in one pass: a vhost has many of both.
func returning(pipelines []Names, defined map[string]bool, vhost topology.Topology) map[string][]Owner {
	exchanges, found := map[string]Names{}, map[string][]Owner{}
	for _, n := range pipelines {
		exchanges[n.ReturnExchange()] = n
	}
	for _, b := range vhost.Bindings {
		n, returns := exchanges[b.Source]
		if returns && b.RoutingKey == ReturnKey(b.Destination) && !b.Equal(n.detachedBinding(b.Destination)) {
			from, _ := takenOverFrom(b)
			found[b.Destination] = append(found[b.Destination], Owner{
				Pipeline: n, AsWorkQueue: true, TakesOverFrom: from, Undefined: !defined[string(n)],
			})
		}
	}
	return found
}

// Pipelines lists the pipelines in a vhost by name: those whose definition is there, whatever it says. None has an empty
// name, which stands for no pipeline.
func Pipelines(vhost topology.Topology) []string {
	var names []string
	for _, b := range vhost.Bindings {
		if name := definedBy(b); name != "" {
			names = append(names, name)
		}
	}
	return topology.Distinct(names)
}

// ofPipeline is the pipeline that a policy belongs to, "" if none. The name alone does not decide.
func ofPipeline(name string, policy topology.Policy) string {
	parsed, is := parsePolicyName(name)
	exchange, _ := policy.Definition["dead-letter-exchange"].(string)
	if is && slices.Contains(parsed.pipeline.deadLetterExchanges(), exchange) {
		return string(parsed.pipeline)
	}
	return ""
}

// OwnersOf finds the other pipelines that a queue belongs to, by name. A pipeline can have it as a work queue and by an
// attachment, and then is listed twice.
func (o Foreign) OwnersOf(queue string) []Owner {
	for _, n := range o.pipelines {
		if n.CoversQueue(queue) {
			return []Owner{{Pipeline: n}}
		}
	}
	owners := slices.Clone(o.returning[queue])
	slices.SortFunc(owners, func(a, b Owner) int {
		return cmp.Or(cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.TakesOverFrom, b.TakesOverFrom))
	})
	return slices.Compact(owners)
}
