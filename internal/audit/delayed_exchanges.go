package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// delayedExchange is a delayed exchange in the vhost with its expected objects. They include the levels of its
// definition, if that is readable, and all existing levels with every level below.
type delayedExchange struct {
	delayed.Names
	expected topology.Topology
}

// findDelayedExchanges recognizes a delayed exchange by its definition. If that is missing, it looks at the deliver
// exchange and its alternate exchange.
func (g graph) findDelayedExchanges() []delayedExchange {
	names := delayed.Found(g.vhost.Topology)
	for exchange, alternate := range g.alternates {
		name, delivers := strings.CutSuffix(exchange, delayed.Names("").DeliverExchange())
		if delivers && name != "" && alternate == delayed.Names(name).UnroutedExchange() {
			names = append(names, name)
		}
	}
	var found []delayedExchange
	for _, name := range topology.Distinct(names) {
		e, err := delayed.Recover(name, g.vhost.Name, g.vhost.Topology)
		if err != nil { // only the name is known
			e = delayed.Exchange{Name: name, Precision: pipeline.Delay{Wait: 1}}
		}
		e.Retired = e.RetiredUpTo(e.Names().LevelsIn(g.vhost.Topology))
		found = append(found, delayedExchange{e.Names(), e.Expand()})
	}
	return found
}

// ownQueues lists the existing own queues of the delayed exchange.
func (g graph) ownQueues(d delayedExchange) []string {
	return where(slices.Sorted(maps.Keys(d.expected.Queues)), func(name string) bool {
		_, exists := g.vhost.Queues[name]
		return exists
	})
}

// isOfDelayedExchange reports whether a queue belongs to a delayed exchange, which has its own rules.
func (g graph) isOfDelayedExchange(queue string) bool {
	return slices.ContainsFunc(g.delayed, func(d delayedExchange) bool {
		_, is := d.expected.Queues[queue]
		return is
	})
}

func (d delayedExchange) finding(message, remedy string) Finding {
	return about("delayed_exchange", string(d.Names)).says(message, remedy)
}

// ofDelayed turns a check of one delayed exchange into a rule for all.
func ofDelayed(find func(g graph, d delayedExchange, report func(Finding))) func(graph, func(Finding)) {
	return func(g graph, report func(Finding)) {
		for _, d := range g.delayed {
			find(g, d, report)
		}
	}
}

// bypassedDelays finds delayed exchanges with a binding that bypasses the inbox.
func bypassedDelays(g graph, d delayedExchange, report func(Finding)) {
	var others []string
	for _, b := range g.bindings[d.Exchange()] {
		if _, isNote := d.Notes().Noted(b); !isNote && (b.ToExchange || b.Destination != d.Inbox()) {
			others = append(others, destination(b))
		}
	}
	if len(others) > 0 {
		report(d.finding(fmt.Sprintf(bypassed, d.Exchange(), listed(others)), fmt.Sprintf(bypassedRemedy, d.DeliverExchange())))
	}
}

// unboundDelayedInboxes finds delayed exchanges whose inbox is not bound, so that they delay nothing.
func unboundDelayedInboxes(g graph, d delayedExchange, report func(Finding)) {
	if !g.bound(d.Exchange(), d.Inbox(), unknown) {
		report(d.finding(fmt.Sprintf(delayedInboxUnbound, d.Inbox(), d.Exchange()), runApply))
	}
}

// unboundUnrouted finds delayed exchanges without a place for messages that cannot be delayed, or that cannot be routed
// when due.
func unboundUnrouted(g graph, d delayedExchange, report func(Finding)) {
	switch {
	case !g.bound(d.UnroutedExchange(), d.UnroutedQueue(), unknown):
		report(d.finding(fmt.Sprintf(unroutedUnbound, d.UnroutedQueue(), d.UnroutedExchange()), runApply))
	case g.alternates[d.DeliverExchange()] != d.UnroutedExchange():
		report(d.finding(fmt.Sprintf(unroutedNoAlternate, d.UnroutedExchange(), d.DeliverExchange()), runApply))
	}
}

// unboundLevels finds delayed exchanges with an incomplete level.
func unboundLevels(g graph, d delayedExchange, report func(Finding)) {
	var missing []string
	for _, l := range d.LevelsIn(d.expected) {
		name := d.Level(l)
		if g.vhost.Exchanges[name].Type != d.expected.Exchanges[name].Type {
			missing = append(missing, quoted("exchange", name))
		}
		if _, exists := g.vhost.Queues[name]; !exists {
			missing = append(missing, quoted("queue", name))
		}
		for _, b := range d.expected.Bindings {
			if b.Source == name && !slices.ContainsFunc(g.bindings[name], b.Equal) {
				missing = append(missing, "the binding from "+quoted("exchange", name)+" to "+destination(b))
			}
		}
	}
	if len(missing) > 0 {
		report(d.finding(fmt.Sprintf(levelUnbound, d.Names, listed(missing)), runApply))
	}
}

// enteredLevels finds levels that get messages from elsewhere than the sidecar and other levels.
func enteredLevels(g graph, d delayedExchange, report func(Finding)) {
	var from, queues []string
	for through, sources := range g.sources {
		if slices.ContainsFunc(g.targets(through), d.isLevel) {
			queues = append(queues, where(sources, func(queue string) bool { return !d.OwnsQueue(queue) })...)
		}
	}
	for _, queue := range topology.Distinct(queues) {
		from = append(from, quoted("queue", queue))
	}
	for _, b := range g.vhost.Bindings {
		if b.Source != "" && b.Source != d.Exchange() && d.isLevel(b.Destination) && !slices.ContainsFunc(d.expected.Bindings, b.Equal) {
			from = append(from, quoted("exchange", b.Source))
		}
	}
	if len(from) > 0 {
		report(d.finding(fmt.Sprintf(levelEntered, d.Names, listed(from)), fmt.Sprintf(levelEnteredRemedy, d.Exchange())))
	}
}

// isLevel reports whether a level has this name.
func (d delayedExchange) isLevel(name string) bool {
	_, own := d.expected.Queues[name]
	return own && name != d.Inbox() && name != d.UnroutedQueue()
}

// unreadableDelayDefinitions finds delayed exchanges whose definition cannot be read.
func unreadableDelayDefinitions(g graph, d delayedExchange, report func(Finding)) {
	_, err := d.DefinitionPlace().Find(g.vhost.Topology)
	if err != nil && g.bound(d.UnroutedExchange(), d.UnroutedQueue(), unknown) {
		report(d.finding(fmt.Sprintf(delayDefinitionUnreadable, d.Names, err), definitionUnreadableRemedy))
	}
}

// freezingDeliveries finds queues that stop the levels of a delayed exchange when they are full.
func freezingDeliveries(g graph, d delayedExchange, report func(Finding)) {
	own := g.ownQueues(d)
	var full []string
	for _, queue := range own {
		full = append(full, where(g.targets(g.exitOf(queue)), func(target string) bool {
			_, isOwn := d.expected.Queues[target]
			return !isOwn && g.rejectsWhenFull(target, true)
		})...)
	}
	for _, on := range g.byOrigin(full, "overflow") {
		f := on.says(fmt.Sprintf(deliveryFreezes, d.Names, queueList(on.queues), d.Refused()), deliveryFreezesRemedy)
		f.queues = append(f.queues, own...)
		report(f)
	}
}

// destination describes the destination of a binding.
func destination(b topology.Binding) string {
	if b.ToExchange {
		return quoted("exchange", b.Destination)
	}
	return quoted("queue", b.Destination)
}

// deadEnds finds exchanges behind the deliver exchange that can have no queue for a message.
func deadEnds(g graph, d delayedExchange, report func(Finding)) {
	var ends []string
	for _, b := range g.bindings[d.DeliverExchange()] {
		if b.ToExchange && !g.surelyRoutes(b.Destination, keysThrough(g.vhost.Exchanges[b.Source].Type, b)) {
			ends = append(ends, quoted("exchange", b.Destination))
		}
	}
	if len(ends) > 0 {
		report(d.finding(fmt.Sprintf(deadEnd, d.Names, listed(topology.Distinct(ends)), d.DeliverExchange()),
			fmt.Sprintf(deadEndRemedy, d.UnroutedExchange())))
	}
}

// deliveryLoops finds delayed exchanges whose own messages come back to them.
func deliveryLoops(g graph, d delayedExchange, report func(Finding)) {
	if certain, can := g.route(d.DeliverExchange(), unknown).queues[d.Inbox()]; can {
		f := d.finding(fmt.Sprintf(deliveryLoop, d.Names), fmt.Sprintf(deliveryLoopRemedy, d.DeliverExchange(), d.Exchange()))
		report(f.warningUnless(certain))
	}
}

// surelyRoutes reports whether every message with this key reaches a queue through the exchange. Exchanges can form a
// circle, so it repeats until a pass finds no new exchange that routes.
func (g graph) surelyRoutes(exchange string, k key) bool {
	routing := map[string]bool{}
	for found := -1; found < len(routing) && !routing[exchange]; {
		found = len(routing)
		g.findRouting(exchange, k, routing, map[string]bool{})
	}
	return routing[exchange]
}

// findRouting checks each exchange on the route once, adds the exchanges that surely route to routing, and reports
// whether this one does.
func (g graph) findRouting(exchange string, k key, routing, visited map[string]bool) bool {
	if !visited[exchange] && !routing[exchange] {
		visited[exchange] = true
		if g.routesOn(exchange, k, func(next string) bool { return g.findRouting(next, k, routing, visited) }) {
			routing[exchange] = true
		}
	}
	return routing[exchange]
}

// routesOn reports whether an exchange surely routes. surelyRoutes says whether the next exchanges do.
func (g graph) routesOn(exchange string, k key, surelyRoutes func(exchange string) bool) bool {
	live, exists := g.vhost.Exchanges[exchange]
	if !exists {
		return false
	}
	mayEnd := false
	for _, b := range g.bindings[exchange] {
		match := matches(live, b, k)
		routes := !b.ToExchange || match != no && surelyRoutes(b.Destination)
		if routes && (match == yes || isOfPlugin(live)) {
			return true
		}
		mayEnd = mayEnd || match != no && !routes
	}
	alternate, has := g.alternates[exchange]
	return has && !mayEnd && surelyRoutes(alternate)
}

// isOfPlugin reports whether a plugin routes for the exchange, such as by a hash. It finds a queue whenever one is
// bound.
func isOfPlugin(exchange topology.Exchange) bool {
	return !slices.Contains([]string{"direct", "fanout", "topic", "headers"}, exchange.Type)
}
