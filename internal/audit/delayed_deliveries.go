package audit

import (
	"fmt"
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// deadEnds finds exchanges through which a delayed exchange delivers, and that may have no queue for a message.
func deadEnds(g graph, d delayedExchange) (message, remedy string) {
	var ends []string
	for _, b := range g.bindings[d.DeliverExchange()] {
		if b.ToExchange && !g.surelyRoutes(b.Destination, g.keyThrough(b), map[string]bool{}) {
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

// surelyRoutes reports whether every message that comes to the exchange with the key gets to a queue.
func (g graph) surelyRoutes(exchange string, k key, visited map[string]bool) bool {
	live, exists := g.vhost.Exchanges[exchange]
	if !exists || visited[exchange] {
		return false
	}
	visited = maps.Clone(visited)
	visited[exchange] = true
	mayEnd := false
	for _, b := range g.bindings[exchange] {
		match := matches(live, b, k)
		routes := !b.ToExchange || match != no && g.surelyRoutes(b.Destination, k, visited)
		if routes && (match == yes || isOfPlugin(live)) {
			return true
		}
		mayEnd = mayEnd || match != no && !routes
	}
	alternate, has := g.alternates[exchange]
	return has && !mayEnd && g.surelyRoutes(alternate, k, visited)
}

// isOfPlugin reports whether the exchange routes by rules of a plugin's, such as a hash: those find a queue if there is one.
func isOfPlugin(exchange topology.Exchange) bool {
	switch exchange.Type {
	case "direct", "fanout", "topic", "headers":
		return false
	}
	return true
}
