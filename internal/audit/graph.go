package audit

import (
	"maps"
	"slices"
	"strings"

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
	routes map[stop]routes
	// sources are the queues in dying, by their exit. targetsAt are the targets of the exits that were asked for so far.
	sources, targetsAt map[exit][]string
	pipelines          []retryPipeline
	delayed            []delayedExchange
	known              Known
	circles            []circle
	// parking are the queues that keep dead letters.
	parking map[string]bool
}

func newGraph(vhost topology.Vhost) graph {
	g := graph{
		vhost: vhost, lookup: topology.NewLookup(vhost),
		settings: map[string]topology.Settings{}, bindings: map[string][]topology.Binding{}, waysIn: map[string][]topology.Binding{},
		alternates: map[string]string{}, arrivalKeys: map[string]map[key]bool{}, parking: map[string]bool{},
		tries: map[string]*trie{}, routes: map[stop]routes{}, sources: map[exit][]string{}, targetsAt: map[exit][]string{},
	}
	for name := range vhost.Queues {
		g.settings[name] = g.lookup.Queue(name)
	}
	g.classicOrQuorum = where(slices.Sorted(maps.Keys(g.settings)), func(name string) bool {
		kind := g.settings[name].Type // streams lose no message by its death
		return kind == topology.Classic || kind == topology.Quorum
	})
	g.dying = where(g.classicOrQuorum, g.deadLetters)
	for _, queue := range g.dying {
		g.arrivalKeys[queue] = map[key]bool{}
		g.sources[g.exitOf(queue)] = append(g.sources[g.exitOf(queue)], queue)
	}
	for name := range vhost.Exchanges {
		// The default exchange has no alternate exchange, and as one it routes no message.
		if alternate, has := g.lookup.AlternateExchange(name); has && name != "" && alternate != "" {
			g.alternates[name] = alternate
		}
	}
	g.addBindings()
	g.pipelines = g.findPipelines()
	g.delayed = g.findDelayedExchanges()
	g.findArrivalKeys()
	g.circles = g.findCircles()
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

// where lists the names for which something is true.
func where(names []string, is func(name string) bool) (found []string) {
	for _, name := range names {
		if is(name) {
			found = append(found, name)
		}
	}
	return found
}

// deadLetters reports whether a queue has a dead-letter exchange.
func (g graph) deadLetters(queue string) bool {
	_, has := g.settings[queue].Text("dead-letter-exchange")
	return has
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
	if text, replaced := s.Text("dead-letter-routing-key"); replaced && has {
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

// DeadLetterTargets returns the queues that can get a dead letter of each queue with a dead-letter exchange.
func DeadLetterTargets(vhost topology.Vhost) map[string][]string {
	g, found := newGraph(vhost), map[string][]string{}
	for _, queue := range g.dying {
		found[queue] = []string{}
		for arrived := range g.arrivalKeys[queue] {
			to, _ := g.deadLetter(queue, arrived)
			found[queue] = slices.AppendSeq(found[queue], maps.Keys(to.queues))
		}
		found[queue] = topology.Distinct(found[queue])
	}
	return found
}

// exit is where dead letters leave queues. Thousands of queues can have the same one, with thousands of targets, so rules
// do not visit every pair.
type exit struct {
	exchange string
	key      key
	// queue is the only queue with this exit, if the keys that messages arrive with there decide.
	queue string
	// delays says that messages leave after a wait.
	delays bool
}

func (g graph) exitOf(queue string) (e exit) {
	e.exchange, e.key, _ = g.afterDeath(queue, unknown)
	_, e.delays = g.settings[queue].Number("message-ttl")
	if e.exchange == "" && e.key == unknown { // the default exchange leads somewhere only with a key
		e.queue = queue
	}
	return e
}

// targets lists the queues that can get a dead letter through an exit. They can be among those that it leaves.
func (g graph) targets(through exit) []string {
	found, followed := g.targetsAt[through]
	if !followed {
		found = slices.Collect(maps.Keys(g.route(through.exchange, through.key).queues))
		for arrived := range g.arrivalKeys[through.queue] {
			found = slices.AppendSeq(found, maps.Keys(g.route(through.exchange, arrived).queues))
		}
		found = topology.Distinct(found)
		g.targetsAt[through] = found
	}
	return found
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

// circle is the shortest route that returns a dead letter to its queue without a consumer. The way begins with that queue,
// and does not repeat it. certain says that there is a route for all keys that messages can arrive with.
type circle struct {
	start   string
	way     []place
	certain bool
}

// String returns the route as "a -> b -> a".
func (c circle) String() string { return strings.Join(append(c.queues(), c.start), " -> ") }

func (c circle) queues() (names []string) {
	for _, at := range c.way {
		names = append(names, at.queue)
	}
	return names
}

// findCircles returns the circle of each queue that has one.
func (g graph) findCircles() (circles []circle) {
	for _, queue := range g.dying {
		c := circle{start: queue, certain: true}
		for _, arrived := range g.sortedArrivalKeys(queue) {
			way := g.wayBack(place{queue, arrived})
			c.certain = c.certain && way != nil
			if c.way == nil {
				c.way = way
			}
		}
		if c.way != nil {
			circles = append(circles, c)
		}
	}
	return circles
}

// step is a place on a way, and the step before it.
type step struct {
	place
	from *step
}

func (g graph) wayBack(start place) (way []place) {
	seen := map[place]bool{start: true}
	for steps := []*step{{place: start}}; len(steps) > 0; steps = steps[1:] {
		at := steps[0]
		to, next := g.deadLetter(at.queue, at.key)
		if slices.Contains(to.sure, start.queue) {
			for ; at != nil; at = at.from {
				way = append(way, at.place)
			}
			slices.Reverse(way)
			return way
		}
		for _, name := range to.sure {
			there := place{name, next}
			if !seen[there] && g.diesByItself(name) {
				seen[there] = true
				steps = append(steps, &step{there, at})
			}
		}
	}
	return nil
}
