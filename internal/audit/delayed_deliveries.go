package audit

import (
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// deadEnds finds exchanges through which a delayed exchange delivers, and that may have no queue for a message.
func deadEnds(g graph, d delayedExchange) (message, remedy string) {
	var ends []string
	for _, b := range g.bindings[d.DeliverExchange()] {
		if b.ToExchange && !g.surelyRoutes(b.Destination, g.keyThrough(b)) {
			ends = append(ends, quoted("exchange", b.Destination))
		}
	}
	if len(ends) == 0 {
		return "", ""
	}
	return fmt.Sprintf(deadEnd, d.Names, listed(distinct(ends)), d.DeliverExchange()), fmt.Sprintf(deadEndRemedy, d.UnroutedExchange())
}

// deliveryLoops finds delayed exchanges to which their own messages come back.
func deliveryLoops(g graph, d delayedExchange) (message, remedy string) {
	if r := g.route(d.DeliverExchange(), unknown); !r.sure[d.Inbox()] && !r.possible[d.Inbox()] {
		return "", ""
	}
	return fmt.Sprintf(deliveryLoop, d.Names), fmt.Sprintf(deliveryLoopRemedy, d.DeliverExchange(), d.Exchange())
}

// surelyRoutes reports whether every message that comes to the exchange with the key gets to a queue. Exchanges can lead back
// to each other, so it looks again until it finds no other exchange that routes.
func (g graph) surelyRoutes(exchange string, k key) bool {
	routing := map[string]bool{}
	for found := -1; found < len(routing) && !routing[exchange]; {
		found = len(routing)
		g.findRouting(exchange, k, routing, map[string]bool{})
	}
	return routing[exchange]
}

// findRouting looks once at each exchange on the way, adds it to those that surely route, and reports whether this one does.
func (g graph) findRouting(exchange string, k key, routing, visited map[string]bool) bool {
	if !visited[exchange] && !routing[exchange] {
		visited[exchange] = true
		if g.routesOn(exchange, k, func(next string) bool { return g.findRouting(next, k, routing, visited) }) {
			routing[exchange] = true
		}
	}
	return routing[exchange]
}

// routesOn reports whether an exchange surely routes, if it is known of others.
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

// isOfPlugin reports whether the exchange routes by rules of a plugin's, such as a hash: those find a queue if there is one.
func isOfPlugin(exchange topology.Exchange) bool {
	switch exchange.Type {
	case "direct", "fanout", "topic", "headers":
		return false
	}
	return true
}
