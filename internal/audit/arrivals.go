package audit

import (
	"maps"
	"slices"
	"strings"
)

// findArrivals collects the keys with which messages arrive in each queue: those of bindings that
// name one, and those that dead letters bring along. A queue that nothing is known of gets its
// messages through the default exchange, with its name as the key.
func (g graph) findArrivals() {
	for _, exchange := range slices.Sorted(maps.Keys(g.bindings)) {
		for _, k := range g.entering(exchange) {
			to := g.route(exchange, k)
			for queue := range to.sure {
				g.arrive(queue, k)
			}
			if !k.known {
				for queue := range to.possible {
					g.arrive(queue, k)
				}
			}
		}
	}
	for _, queue := range g.mortal() {
		if len(g.arrivals[queue]) == 0 {
			g.arrive(queue, known(queue))
		}
	}
}

// entering lists the keys with which messages are published to an exchange, as far as its bindings tell.
func (g graph) entering(exchange string) []key {
	var keys []key
	kind := g.vhost.Exchanges[exchange].Type
	for _, b := range g.bindings[exchange] {
		if kind == "direct" || kind == "topic" && !strings.ContainsAny(b.RoutingKey, "*#") {
			keys = append(keys, known(b.RoutingKey))
		} else {
			keys = append(keys, unknown)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.text, b.text) })
	return slices.Compact(keys)
}

// arrive notes a key, and follows the message through its deaths.
func (g graph) arrive(queue string, k key) {
	if g.arrivals[queue][k] {
		return
	}
	if g.arrivals[queue] == nil {
		g.arrivals[queue] = map[key]bool{}
	}
	g.arrivals[queue][k] = true
	to, next := g.deadLetter(queue, k)
	for target := range to.sure {
		g.arrive(target, next)
	}
	if !next.known {
		for target := range to.possible {
			g.arrive(target, next)
		}
	}
}

// keysOf lists the keys with which messages arrive in a queue.
func (g graph) keysOf(queue string) []key {
	return slices.SortedFunc(maps.Keys(g.arrivals[queue]), func(a, b key) int { return strings.Compare(a.String(), b.String()) })
}
