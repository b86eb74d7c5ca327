package topology

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// others is what belongs to somebody else than the pipeline in question.
type others struct {
	// pipelines are the names of the other pipelines in the vhost.
	pipelines []Names
	// policies are those of no pipeline.
	policies map[string]Policy
}

var pipelinePolicy = regexp.MustCompile(`^retry/([^/]+)/(own|fallback|queues|queue/.+|attachment/.+|attachment-fallback/.+)$`)

// othersIn finds what belongs to others than these pipelines.
func othersIn(vhost Vhost, mine []string) others {
	o := others{policies: maps.Clone(vhost.Policies)}
	maps.DeleteFunc(o.policies, func(name string, policy Policy) bool {
		return pipelineOf(name, policy) != "" || slices.ContainsFunc(mine, func(m string) bool { return Names(m).namesPolicy(name) })
	})
	for _, name := range Pipelines(vhost.Topology) {
		if !slices.Contains(mine, name) {
			o.pipelines = append(o.pipelines, Names(name))
		}
	}
	return o
}

// Pipelines lists the pipelines in a vhost by name: those whose definition is there.
func Pipelines(vhost Topology) []string {
	var names []string
	for _, b := range vhost.Bindings {
		name, isDLX := strings.CutSuffix(b.Source, Names("").DeadLetterExchange())
		if _, defined := b.Arguments[DefinitionArgument]; defined && isDLX && b.Destination == Names(name).Inbox() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// namesPolicy tells whether the pipeline or one of its attachments would call a policy so. Whatever
// somebody changed in a policy of its own, the pipeline does not take it for another's.
func (n Names) namesPolicy(policy string) bool {
	return pipelinePolicy.MatchString(policy) && strings.HasPrefix(policy, "retry/"+string(n)+Separator)
}

// pipelineOf tells which pipeline a policy belongs to, "" if none. The name alone does not tell.
func pipelineOf(name string, policy Policy) string {
	match := pipelinePolicy.FindStringSubmatch(name)
	if match == nil {
		return ""
	}
	n := Names(match[1])
	if name == n.ShieldPolicy() || policy.Definition["dead-letter-exchange"] == n.DeadLetterExchange() {
		return match[1]
	}
	return ""
}

// ownerOf tells which other pipeline a queue belongs to, as one of its own or as a work queue.
func (o others) ownerOf(queue string, vhost Topology) (pipeline Names, asWorkQueue, found bool) {
	for _, n := range o.pipelines {
		if n.OwnsQueue(queue) {
			return n, false, true
		}
		returns := func(b Binding) bool {
			return b.Source == n.ReturnExchange() && b.Destination == queue && b.RoutingKey == ReturnKey(queue)
		}
		if slices.ContainsFunc(vhost.Bindings, returns) {
			return n, true, true
		}
	}
	return "", false, false
}
