package audit

import (
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// concerning returns the part of a vhost that decides what happens to the messages of these queues and of a pipeline or delayed exchange.
// Otherwise, a plan of many pipelines in a large vhost would follow everybody's messages once for each.
func concerning(vhost topology.Vhost, owner string, queues []string) topology.Vhost {
	n := newNeighbourhood(vhost, owner)
	for _, own := range n.owned[owner] {
		n.follow(own)
	}
	for _, queue := range queues {
		n.follow(end{queue, false})
	}
	if n.followed[byKey] {
		return vhost // a dead letter can go to any queue
	}
	vhost.Exchanges, vhost.Queues, vhost.Bindings = n.exchanges, n.queues, nil
	for i, b := range n.vhost.Bindings {
		if n.bindings[i] {
			vhost.Bindings = append(vhost.Bindings, b)
		}
	}
	return vhost
}

// neighbourhood grows around some objects of a vhost. It can have more than it must: every exchange counts that an argument or a policy
// names, whatever takes precedence.
type neighbourhood struct {
	vhost topology.Vhost
	// from and to have the indexes of the bindings of each exchange, and of those to each queue or exchange.
	from map[string][]int
	to   map[end][]int
	// alternates has the alternate exchanges of an exchange, and alternateOf those that have it as one.
	alternates, alternateOf map[string][]string
	// exits has what a queue dead-letters to, and entrances the queues that dead-letter there.
	exits     map[string][]end
	entrances map[end][]string
	// owned has the objects whose names begin with the name of a pipeline or delayed exchange, which is known by only some of them.
	owned map[string][]end

	exchanges map[string]topology.Exchange
	queues    map[string]topology.Queue
	bindings  map[int]bool
	// followed, supplied and whole have the objects that follow, supply and addWhole have added.
	followed, supplied, whole map[end]bool
}

// end is an end of a binding: a queue or an exchange.
type end struct {
	name     string
	exchange bool
}

func destinationOf(b topology.Binding) end { return end{b.Destination, b.ToExchange} }

// byKey is the end of a dead letter for the default exchange that keeps its key.
var byKey = end{"", false}

func newNeighbourhood(vhost topology.Vhost, owner string) *neighbourhood {
	n := &neighbourhood{
		vhost: vhost, from: map[string][]int{}, to: map[end][]int{},
		alternates: map[string][]string{}, alternateOf: map[string][]string{}, exits: map[string][]end{}, entrances: map[end][]string{},
		owned: map[string][]end{}, exchanges: map[string]topology.Exchange{}, queues: map[string]topology.Queue{}, bindings: map[int]bool{},
		followed: map[end]bool{}, supplied: map[end]bool{}, whole: map[end]bool{},
	}
	for i, b := range vhost.Bindings {
		to := destinationOf(b)
		n.from[b.Source], n.to[to] = append(n.from[b.Source], i), append(n.to[to], i)
	}
	routing := topology.NewMatcher(withKeys(vhost.Policies, "dead-letter-exchange", "dead-letter-routing-key", "alternate-exchange"))
	n.addAlternates(routing)
	n.addExits(routing)
	n.addOwned(owner)
	return n
}

func withKeys(policies map[string]topology.Policy, keys ...string) map[string]topology.Policy {
	found := map[string]topology.Policy{}
	for name, policy := range policies {
		for _, key := range keys {
			if _, has := policy.Definition[key]; has {
				found[name] = policy
			}
		}
	}
	return found
}

// addAlternates finds all alternate exchanges, by argument and by policy.
func (n *neighbourhood) addAlternates(routing topology.Matcher) {
	for name, exchange := range n.vhost.Exchanges {
		matching := routing.Named(name)
		for _, alternate := range textsOf(exchange.Arguments, matching, "alternate-exchange") {
			n.alternates[name] = append(n.alternates[name], alternate)
			n.alternateOf[alternate] = append(n.alternateOf[alternate], name)
		}
	}
}

// addExits finds all places that a queue's dead letters can go to.
func (n *neighbourhood) addExits(routing topology.Matcher) {
	for name, queue := range n.vhost.Queues {
		matching := routing.Named(name)
		for _, exchange := range textsOf(queue.Arguments, matching, "dead-letter-exchange") {
			exits := []end{{exchange, true}}
			if exchange == "" {
				exits = byDefaultExchange(queue.Arguments, matching)
			}
			n.exits[name] = append(n.exits[name], exits...)
			for _, exit := range exits {
				n.entrances[exit] = append(n.entrances[exit], name)
			}
		}
	}
}

// byDefaultExchange returns the ends of dead letters for the default exchange. A policy that sets the key does not always apply.
func byDefaultExchange(arguments topology.Arguments, matching []topology.NamedPolicy) []end {
	const setting = "dead-letter-routing-key"
	var exits []end
	for _, key := range textsOf(arguments, matching, setting) {
		exits = append(exits, end{key, false})
	}
	if len(textsOf(arguments, nil, setting)) == 0 {
		exits = append(exits, byKey)
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

// addOwned finds the objects that can belong to the owner, or to another pipeline or delayed exchange, with or without a definition.
func (n *neighbourhood) addOwned(owner string) {
	owners := map[string]bool{owner: true}
	for _, name := range slices.Concat(pipeline.Pipelines(n.vhost.Topology), delayed.Found(n.vhost.Topology)) {
		owners[name] = true
	}
	for exchange := range n.vhost.Exchanges {
		for _, suffix := range []string{pipeline.Names("").ReturnExchange(), delayed.Names("").DeliverExchange()} {
			if name, is := strings.CutSuffix(exchange, suffix); is {
				owners[name] = true
			}
		}
	}
	add := func(e end) {
		for _, prefix := range prefixes(e.name) {
			if owners[prefix] {
				n.owned[prefix] = append(n.owned[prefix], e)
			}
		}
	}
	for name := range n.vhost.Exchanges {
		add(end{name, true})
	}
	for name := range n.vhost.Queues {
		add(end{name, false})
	}
}

// prefixes returns a name and its beginnings that end before a dot.
func prefixes(name string) []string {
	found := []string{name}
	for i, r := range name {
		if r == '.' {
			found = append(found, name[:i])
		}
	}
	return found
}

// follow adds an object, every route on which messages reach it, and every route on which they leave.
func (n *neighbourhood) follow(at end) {
	if n.followed[at] {
		return
	}
	n.followed[at] = true
	n.supplyWhole(at)
	for _, next := range n.nextTo(at) {
		n.follow(next)
	}
}

// nextTo lists where messages can go from here.
func (n *neighbourhood) nextTo(at end) []end {
	if !at.exchange {
		return n.exits[at.name]
	}
	var next []end
	for _, i := range n.from[at.name] {
		next = append(next, destinationOf(n.vhost.Bindings[i]))
	}
	for _, alternate := range n.alternates[at.name] {
		next = append(next, end{alternate, true})
	}
	return next
}

// addWhole adds an object, and its messages' routes as far as the next queues.
func (n *neighbourhood) addWhole(at end) {
	if n.whole[at] {
		return
	}
	n.whole[at] = true
	n.add(at)
	if at.exchange {
		for _, i := range n.from[at.name] {
			n.bindings[i] = true
		}
	}
	for _, next := range n.nextTo(at) {
		if next.exchange {
			n.addWhole(next)
		} else {
			n.add(next)
		}
	}
}

func (n *neighbourhood) add(at end) {
	exchange, exists := n.vhost.Exchanges[at.name]
	queue, has := n.vhost.Queues[at.name]
	switch {
	case at.exchange && exists:
		n.exchanges[at.name] = exchange
	case !at.exchange && has:
		n.queues[at.name] = queue
	}
}

// supply adds an object, and every route on which messages reach it.
func (n *neighbourhood) supply(at end) {
	if n.supplied[at] {
		return
	}
	n.supplied[at] = true
	n.add(at)
	for _, name := range prefixes(at.name) {
		for _, sibling := range n.owned[name] {
			n.supplyWhole(sibling)
		}
	}
	for _, i := range n.to[at] {
		n.supplyBy(i)
	}
	if at.exchange {
		for _, exchange := range n.alternateOf[at.name] {
			n.supplyWhole(end{exchange, true})
		}
	}
	sources := n.entrances[at]
	if !at.exchange {
		sources = slices.Concat(sources, n.entrances[byKey])
	}
	for _, queue := range sources {
		n.supplyWhole(end{queue, false})
	}
}

func (n *neighbourhood) supplyWhole(at end) {
	n.supply(at)
	n.addWhole(at)
}

// supplyBy adds a binding with its exchange. A key that only another binding of the exchange shows matters if this one accepts several.
func (n *neighbourhood) supplyBy(binding int) {
	n.bindings[binding] = true
	b := n.vhost.Bindings[binding]
	source := end{b.Source, true}
	n.supply(source)
	if !keysThrough(n.vhost.Exchanges[b.Source].Type, b).known {
		n.addWhole(source)
	}
}
