package audit

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// graph is a vhost with indexes to follow messages.
type graph struct {
	vhost    topology.Vhost
	lookup   topology.Lookup
	settings map[string]topology.Settings
	// classicOrQuorum are the queues where messages can die. dying are the ones with a dead-letter exchange.
	classicOrQuorum, dying []string
	// bindings has the bindings from each exchange, waysIn the ones to each queue except from the default exchange.
	bindings, waysIn map[string][]topology.Binding
	tries            map[string]*trie
	// alternates maps exchanges to their alternate exchanges.
	alternates map[string]string
	// arrivalKeys maps queues with a dead-letter exchange to the routing keys that messages arrive with.
	arrivalKeys map[string]map[key]bool
	// routes are the routes that were followed so far.
	routes    map[stop]routes
	pipelines []pipeline.Names
	// defined are the pipelines with a readable definition.
	defined map[pipeline.Names]pipeline.Pipeline
	delayed []delayedExchange
	known   Known
	// parking are the queues that keep dead letters.
	parking map[string]bool
}

func newGraph(vhost topology.Vhost) graph {
	g := graph{
		vhost: vhost, lookup: topology.NewLookup(vhost),
		settings: map[string]topology.Settings{}, bindings: map[string][]topology.Binding{}, waysIn: map[string][]topology.Binding{},
		alternates: map[string]string{}, arrivalKeys: map[string]map[key]bool{}, parking: map[string]bool{},
		tries: map[string]*trie{}, routes: map[stop]routes{},
		defined: map[pipeline.Names]pipeline.Pipeline{},
	}
	for name := range vhost.Queues {
		g.settings[name] = g.lookup.Queue(name)
	}
	g.classicOrQuorum = g.findClassicOrQuorum()
	g.dying = g.findDying()
	for _, queue := range g.dying {
		g.arrivalKeys[queue] = map[key]bool{}
	}
	for name := range vhost.Exchanges {
		// The default exchange has no alternate exchange, and as one it routes no message.
		if alternate, has := g.lookup.AlternateExchange(name); has && name != "" && alternate != "" {
			g.alternates[name] = alternate
		}
	}
	g.addBindings()
	g.pipelines = g.findPipelines()
	for _, n := range g.pipelines {
		if p, _, err := pipeline.Defined(string(n), "", vhost.Topology); err == nil {
			g.defined[n] = p
		}
	}
	g.delayed = g.findDelayedExchanges()
	g.findArrivalKeys()
	g.findParking()
	return g
}

func (g graph) addBindings() {
	for _, b := range g.vhost.Bindings {
		if b.Source == "" {
			continue
		}
		g.bindings[b.Source] = append(g.bindings[b.Source], b)
		if !b.ToExchange {
			g.waysIn[b.Destination] = append(g.waysIn[b.Destination], b)
		}
	}
	for name := range g.vhost.Queues { // every queue is bound to the default exchange, which routes by queue name
		g.bindings[""] = append(g.bindings[""], topology.Binding{Destination: name, RoutingKey: name})
	}
	for exchange, bindings := range g.bindings {
		if kind := g.vhost.Exchanges[exchange].Type; exchange == "" || kind == "direct" || kind == "topic" {
			g.tries[exchange] = newTrie(kind, bindings)
		}
	}
}

// classicAndQuorum lists the queues where messages can die. Streams lose no message that way.
func (g graph) classicAndQuorum() []string { return slices.Clone(g.classicOrQuorum) }

func (g graph) findClassicOrQuorum() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.settings)), func(name string) bool {
		kind := g.settings[name].Type
		return kind != topology.Classic && kind != topology.Quorum
	})
}

// deadLettering lists the queues with a dead-letter exchange.
func (g graph) deadLettering() []string { return slices.Clone(g.dying) }

func (g graph) findDying() []string {
	return slices.DeleteFunc(g.classicAndQuorum(), func(name string) bool {
		_, has := g.settings[name].Text("dead-letter-exchange")
		return !has
	})
}

// lasting reports whether a queue outlives its connection and consumers. Other queues never park messages, and there
// can be thousands.
func (g graph) lasting(name string) bool {
	queue := g.settings[name]
	return !queue.Exclusive && !queue.AutoDelete
}

// afterDeath returns the exchange and the routing key of a dead letter. If the queue has no dead-letter exchange, has
// is false.
func (g graph) afterDeath(queue string, arrived key) (exchange string, next key, has bool) {
	s := g.settings[queue]
	exchange, has = s.Text("dead-letter-exchange")
	next = arrived
	if text, replaced := s.Text("dead-letter-routing-key"); replaced {
		next = known(text)
	}
	return exchange, next, has
}

// deadLetter returns the route of a dead letter and its routing key.
func (g graph) deadLetter(queue string, arrived key) (routes, key) {
	exchange, next, has := g.afterDeath(queue, arrived)
	if !has {
		return routes{nowhere: true}, next
	}
	return g.route(exchange, next), next
}

// targets lists the other queues that can get a dead letter of the queue.
func (g graph) targets(queue string) []string {
	to, next := g.deadLetter(queue, unknown)
	found := slices.Collect(maps.Keys(to.queues))
	if next == unknown && len(to.passed) == 0 { // the default exchange leads somewhere only with a key
		for arrived := range g.arrivalKeys[queue] {
			to, _ = g.deadLetter(queue, arrived)
			found = slices.AppendSeq(found, maps.Keys(to.queues))
		}
	}
	return slices.DeleteFunc(topology.Distinct(found), func(name string) bool { return name == queue })
}

// diesByItself reports whether messages leave the queue without a rejection.
func (g graph) diesByItself(queue string) bool {
	s := g.settings[queue]
	_, expires := s.Number("message-ttl")
	overflow, _ := s.Text("overflow")
	return expires || s.Limited() && overflow != "reject-publish"
}

// place is a queue and the routing key that a message arrived with.
type place struct {
	queue string
	key   key
}

// wayBack finds the shortest route that returns a dead letter to its queue without a consumer. The route begins and ends
// with that queue. certain says that there is a route for all keys that messages can arrive with.
func (g graph) wayBack(queue string) (way []place, certain bool) {
	certain = true
	for _, arrived := range g.sortedArrivalKeys(queue) {
		back := g.wayBackFrom(place{queue, arrived})
		certain = certain && back != nil
		if way == nil {
			way = back
		}
	}
	return way, certain
}

func (g graph) wayBackFrom(start place) []place {
	from := map[place]place{}
	seen := map[place]bool{start: true}
	for queue := []place{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		to, next := g.deadLetter(at.queue, at.key)
		for _, name := range to.sure() {
			there := place{name, next}
			if name == start.queue {
				from[there] = at
				return wayTo(from, start, there)
			}
			if !seen[there] && g.diesByItself(name) {
				seen[there], from[there] = true, at
				queue = append(queue, there)
			}
		}
	}
	return nil
}

// wayTo returns the route from start to end, which can be the same place.
func wayTo(from map[place]place, start, end place) []place {
	way := []place{end}
	for at := from[end]; at != start; at = from[at] {
		way = append(way, at)
	}
	way = append(way, start)
	slices.Reverse(way)
	return way
}

// arrows returns a route as "a -> b -> a".
func arrows(way []place) string {
	names := make([]string, len(way))
	for i, at := range way {
		names[i] = at.queue
	}
	return strings.Join(names, " -> ")
}

// queuesOn lists the queues of a circular route, each once.
func queuesOn(way []place) []string {
	var names []string
	for _, at := range way[:len(way)-1] {
		names = append(names, at.queue)
	}
	return names
}
