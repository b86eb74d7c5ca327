package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Foreign is what belongs to somebody else than the pipeline in question.
type Foreign struct {
	// pipelines are the names of the other pipelines in the vhost.
	pipelines []Names
	// returning are their work queues, each with the first pipeline that messages return to it from.
	returning map[string]Names
	// Policies are those of no pipeline, and those that a pipeline without a definition has left.
	Policies map[string]topology.Policy
}

// ForeignTo finds what belongs to others than these pipelines.
func ForeignTo(vhost topology.Vhost, mine []string) Foreign {
	o, pipelines := Foreign{Policies: maps.Clone(vhost.Policies)}, Pipelines(vhost.Topology)
	defined := map[string]bool{}
	for _, name := range pipelines {
		defined[name] = true
	}
	maps.DeleteFunc(o.Policies, func(name string, policy topology.Policy) bool {
		return defined[ofPipeline(name, policy)] || slices.ContainsFunc(mine, func(m string) bool { return Names(m).namesPolicy(name) })
	})
	for _, name := range pipelines {
		if !slices.Contains(mine, name) {
			o.pipelines = append(o.pipelines, Names(name))
		}
	}
	o.returning = returning(o.pipelines, vhost.Topology)
	return o
}

// returning finds the work queues of these pipelines, in one pass: a vhost has many of both.
func returning(pipelines []Names, vhost topology.Topology) map[string]Names {
	exchanges, found := map[string]Names{}, map[string]Names{}
	for _, n := range pipelines {
		exchanges[n.ReturnExchange()] = n
	}
	for _, b := range vhost.Bindings {
		n, returns := exchanges[b.Source]
		if first, known := found[b.Destination]; returns && b.RoutingKey == ReturnKey(b.Destination) && (!known || n < first) {
			found[b.Destination] = n
		}
	}
	return found
}

// Pipelines lists the pipelines in a vhost by name: those whose definition is there, whatever it says. None has an empty
// name, which stands for no pipeline.
func Pipelines(vhost topology.Topology) []string {
	var names []string
	for _, b := range vhost.Bindings {
		name, isDLX := strings.CutSuffix(b.Source, Names("").DeadLetterExchange())
		if _, defined := b.Arguments[DefinitionArgument]; defined && isDLX && name != "" && b.Destination == Names(name).Inbox() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ofPipeline is the pipeline that a policy belongs to, "" if none. The name alone does not decide.
func ofPipeline(name string, policy topology.Policy) string {
	parsed, is := parsePolicyName(name)
	if is && policy.Definition["dead-letter-exchange"] == parsed.pipeline.DeadLetterExchange() {
		return string(parsed.pipeline)
	}
	return ""
}

// OwnerOf finds the other pipeline that a queue belongs to, as one of those that its policy covers or as a work queue.
func (o Foreign) OwnerOf(queue string) (pipeline Names, asWorkQueue, found bool) {
	for _, n := range o.pipelines {
		if n.CoversQueue(queue) {
			return n, false, true
		}
	}
	pipeline, found = o.returning[queue]
	return pipeline, found, found
}
