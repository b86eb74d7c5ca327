package audit

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// findArrivalKeys collects the keys with which messages arrive in each queue: those of bindings that
// name one, and those that dead letters keep. A queue of which nothing is known gets its
// messages through the default exchange, with its name as the key.
func (g graph) findArrivalKeys() {
	for _, exchange := range slices.Sorted(maps.Keys(g.bindings)) {
		for _, k := range g.publishedKeys(exchange) {
			to := g.route(exchange, k)
			for queue := range to.sure {
				g.addArrivalKey(queue, k)
			}
			if !k.known {
				for queue := range to.possible {
					g.addArrivalKey(queue, k)
				}
			}
		}
	}
	for _, queue := range g.classicAndQuorum() {
		if len(g.arrivalKeys[queue]) == 0 {
			g.addArrivalKey(queue, known(queue))
		}
	}
}

// publishedKeys lists the keys with which messages are published to an exchange, as far as its bindings
// show them.
func (g graph) publishedKeys(exchange string) []key {
	var keys []key
	for _, b := range g.bindings[exchange] {
		keys = append(keys, g.keyThrough(b))
	}
	topology.Sort(keys, func(a, b *key) int { return strings.Compare(a.text, b.text) })
	return slices.Compact(keys)
}

// keyThrough is the key that a message has which the binding has accepted, if there is only one.
func (g graph) keyThrough(b topology.Binding) key {
	kind := g.vhost.Exchanges[b.Source].Type
	if kind == "direct" || kind == "topic" && !strings.ContainsAny(b.RoutingKey, "*#") {
		return known(b.RoutingKey)
	}
	return unknown
}

// addArrivalKey notes a key, and follows the message through its deaths.
func (g graph) addArrivalKey(queue string, k key) {
	if g.arrivalKeys[queue][k] {
		return
	}
	if g.arrivalKeys[queue] == nil {
		g.arrivalKeys[queue] = map[key]bool{}
	}
	g.arrivalKeys[queue][k] = true
	to, next := g.deadLetter(queue, k)
	for target := range to.sure {
		g.addArrivalKey(target, next)
	}
	if !next.known {
		for target := range to.possible {
			g.addArrivalKey(target, next)
		}
	}
}

// sortedArrivalKeys lists the keys with which messages arrive in a queue.
func (g graph) sortedArrivalKeys(queue string) []key {
	keys := slices.Collect(maps.Keys(g.arrivalKeys[queue]))
	topology.Sort(keys, func(a, b *key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
