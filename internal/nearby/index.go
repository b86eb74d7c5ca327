// Package nearby finds the part of a vhost that can matter to a pipeline or a delayed exchange.
//
// It is pure. Checks find in that part what they find in the whole vhost, which can be large.
package nearby

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Index knows the owner of each object of a vhost, and where messages come from and go to. A listing builds it once for all plans.
// It can know more routes than there are: every exchange counts that an argument or a policy names, whatever takes precedence.
type Index struct {
	all topology.Vhost
	// ends are all queues and exchanges, also missing ones that others name, in the order of their names.
	ends []end
	// from and to have the indexes of the bindings of each exchange, and of those to each queue or exchange.
	from map[string][]int
	to   map[end][]int
	// routing are the policies that decide where messages go, and those that are named after an owner.
	routing topology.Matcher
	// alternateOf has the exchanges with an alternate exchange, and entrances the queues that dead-letter there.
	alternateOf map[string][]string
	entrances   map[end][]string

	// definitions has the indexes of the bindings that define a pipeline or a delayed exchange.
	definitions map[string][]int
	// pipelines have a definition. scattered are other owners, which only some of their objects show.
	pipelines, scattered map[string]bool
	// covered has the queues under the policies that are named after an owner.
	covered map[string][]string
	// own has the policies of each of the pipelines, and shared all that can matter to everyone.
	own    map[string]map[string]topology.Policy
	shared map[string]topology.Policy
	// everywhere has the indexes of bindings that show who owns shared policies.
	everywhere []int
}

// end is an end of a binding: a queue or an exchange.
type end struct {
	name     string
	exchange bool
}

func destinationOf(b topology.Binding) end { return end{b.Destination, b.ToExchange} }

// byKey is the end of a dead letter for the default exchange that keeps its key.
var byKey = end{"", false}

// NewIndex indexes a vhost, which must not change afterwards.
func NewIndex(vhost topology.Vhost) *Index {
	x := &Index{
		all: vhost, from: map[string][]int{}, to: map[end][]int{},
		alternateOf: map[string][]string{}, entrances: map[end][]string{},
		definitions: map[string][]int{}, pipelines: map[string]bool{}, scattered: map[string]bool{}, covered: map[string][]string{},
		own: map[string]map[string]topology.Policy{}, shared: map[string]topology.Policy{},
	}
	for i, b := range vhost.Bindings {
		to := destinationOf(b)
		x.from[b.Source], x.to[to] = append(x.from[b.Source], i), append(x.to[to], i)
	}
	x.addOwners()
	x.addPolicies()
	x.addRoutes()
	x.addEnds()
	return x
}

// addOwners finds the pipelines and delayed exchanges, with or without a definition.
func (x *Index) addOwners() {
	for i, b := range x.all.Bindings {
		if name := pipeline.DefinedBy(b); name != "" {
			x.pipelines[name] = true
			x.definitions[name] = append(x.definitions[name], i)
		}
	}
	for _, name := range delayed.Found(x.all.Topology) {
		x.scattered[name] = true
		x.definitions[name] = append(x.definitions[name], x.from[delayed.Names(name).UnroutedExchange()]...)
	}
	for exchange := range x.all.Exchanges {
		for _, suffix := range []string{pipeline.Names("").ReturnExchange(), delayed.Names("").DeliverExchange()} {
			if name, is := strings.CutSuffix(exchange, suffix); is {
				x.scattered[name] = true
			}
		}
	}
}

// addPolicies divides the policies. A policy that somebody extended to exchanges can match those of any pipeline.
func (x *Index) addPolicies() {
	for name, policy := range x.all.Policies {
		owner := pipeline.OwnerOfPolicy(name, policy)
		switch {
		case !x.pipelines[owner]:
			x.shared[name] = policy
			if owner != "" {
				x.everywhere = append(x.everywhere, x.from[pipeline.Names(owner).ReturnExchange()]...)
			}
			continue
		case policy.MeantForExchanges():
			x.shared[name] = policy
			x.everywhere = append(x.everywhere, x.definitions[owner]...)
		}
		if x.own[owner] == nil {
			x.own[owner] = map[string]topology.Policy{}
		}
		x.own[owner][name] = policy
	}
}

// ownerInName returns the pipeline or delayed exchange that a policy is named after, or "".
func ownerInName(policy string) string {
	if parts := strings.Split(policy, pipeline.Separator); len(parts) > 2 {
		return parts[1]
	}
	return ""
}

// routingKeys are the policy keys that decide where messages go.
var routingKeys = []string{"dead-letter-exchange", "dead-letter-routing-key", "alternate-exchange"}

func routes(policy topology.Policy) bool {
	return slices.ContainsFunc(routingKeys, func(key string) bool { return policy.Definition[key] != nil })
}

// addRoutes finds what the policies cover, all alternate exchanges, and all places that dead letters can go to.
func (x *Index) addRoutes() {
	routing := maps.Clone(x.all.Policies)
	maps.DeleteFunc(routing, func(name string, policy topology.Policy) bool {
		return !routes(policy) && ownerInName(name) == ""
	})
	x.routing = topology.NewMatcher(routing)
	for name := range x.all.Exchanges {
		for _, alternate := range x.alternates(name) {
			x.alternateOf[alternate] = append(x.alternateOf[alternate], name)
		}
	}
	for name := range x.all.Queues {
		for _, policy := range x.routing.Named(name) {
			if owner := ownerInName(policy.Name); owner != "" {
				x.covered[owner] = append(x.covered[owner], name)
			}
		}
		for _, exit := range x.exits(name) {
			x.entrances[exit] = append(x.entrances[exit], name)
		}
	}
}

// alternates lists the alternate exchanges of an exchange, which can be missing.
func (x *Index) alternates(exchange string) []string {
	return textsOf(x.all.Exchanges[exchange].Arguments, x.routing.Named(exchange), "alternate-exchange")
}

// exits lists where a queue dead-letters to. The queue can be missing.
func (x *Index) exits(queue string) []end {
	arguments, matching := x.all.Queues[queue].Arguments, x.routing.Named(queue)
	var exits []end
	for _, exchange := range textsOf(arguments, matching, "dead-letter-exchange") {
		if exchange != "" {
			exits = append(exits, end{exchange, true})
			continue
		}
		for _, key := range textsOf(arguments, matching, "dead-letter-routing-key") {
			exits = append(exits, end{key, false})
		}
		if len(textsOf(arguments, nil, "dead-letter-routing-key")) == 0 { // a policy that sets the key does not always apply
			exits = append(exits, byKey)
		}
	}
	return exits
}

// textsOf returns all values of a setting, as an argument and in policies.
func textsOf(arguments topology.Arguments, policies []topology.NamedPolicy, key string) []string {
	var found []string
	for _, value := range []any{arguments[key], arguments["x-"+key]} {
		if text, is := value.(string); is {
			found = append(found, text)
		}
	}
	for _, policy := range policies {
		if text, is := policy.Definition[key].(string); is {
			found = append(found, text)
		}
	}
	return found
}

func (x *Index) addEnds() {
	for name := range x.all.Exchanges {
		x.ends = append(x.ends, end{name, true})
	}
	for name := range x.all.Queues {
		x.ends = append(x.ends, end{name, false})
	}
	for name := range x.alternateOf {
		x.ends = append(x.ends, end{name, true})
	}
	x.ends = slices.AppendSeq(x.ends, maps.Keys(x.entrances))
	slices.SortFunc(x.ends, func(a, b end) int { return cmp.Compare(a.name, b.name) })
}

// belonging lists the ends whose names begin with a pipeline's or delayed exchange's.
func (x *Index) belonging(owner string) []end {
	var found []end
	first, _ := slices.BinarySearchFunc(x.ends, owner, func(e end, name string) int { return cmp.Compare(e.name, name) })
	for _, e := range x.ends[first:] {
		rest, begins := strings.CutPrefix(e.name, owner)
		if !begins {
			break
		}
		if rest == "" || rest[0] == '.' {
			found = append(found, e)
		}
	}
	return found
}
