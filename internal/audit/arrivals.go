package audit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// findArrivalKeys finds the routing keys that messages arrive with in each queue with a dead-letter exchange. They come
// from bindings of exchanges that publishers publish to, from all bindings with a definite key, and from dead letters that
// keep their key. If it finds no key, it assumes messages through the default exchange, with the queue's name as the key.
func (g graph) findArrivalKeys() {
	reached := map[string]bool{}
	for _, exchange := range g.likelyPublishedTo() {
		if !reached[exchange] {
			g.arrive(g.routeOnce(stop{exchange, everything, true}), reached)
		}
	}
	for exchange, bindings := range g.bindings {
		for _, b := range bindings {
			if k := keysThrough(g.vhost.Exchanges[exchange].Type, b); k.known && exchange != "" {
				g.arrive(g.routeOnce(stop{exchange, k, true}), reached)
			}
		}
	}
	for _, queue := range g.dying {
		if len(g.arrivalKeys[queue]) == 0 {
			g.arriveIn(place{queue, known(queue)}, reached)
		}
	}
}

// likelyPublishedTo lists all exchanges with bindings: first those that nothing leads to, then those that get messages
// back after a delay. What other exchanges get comes from these.
func (g graph) likelyPublishedTo() []string {
	const delayed, led = 1, 2
	order := map[string]int{}
	for through := range g.sources {
		order[through.exchange] = max(order[through.exchange], delayed)
		if !through.delays {
			order[through.exchange] = led
		}
	}
	for _, alternate := range g.alternates {
		order[alternate] = led
	}
	for _, b := range g.vhost.Bindings {
		if b.ToExchange {
			order[b.Destination] = led
		}
	}
	exchanges := slices.Sorted(maps.Keys(g.bindings))
	slices.SortStableFunc(exchanges, func(a, b string) int { return order[a] - order[b] })
	return slices.DeleteFunc(exchanges, func(name string) bool { return name == "" })
}

// arrive adds the keys of messages on their way.
func (g graph) arrive(r routes, reached map[string]bool) {
	for at := range r.passed {
		reached[at.exchange] = true
	}
	for _, at := range r.arrivals {
		g.arriveIn(at, reached)
	}
}

// arriveIn adds a key, and follows the message when it dies.
func (g graph) arriveIn(at place, reached map[string]bool) {
	keys, deadLetters := g.arrivalKeys[at.queue]
	if !deadLetters || keys[at.key] {
		return
	}
	keys[at.key] = true
	to, _ := g.deadLetter(at.queue, at.key)
	g.arrive(to, reached)
}

// sortedArrivalKeys has an order for keys of the same text, too. The first one decides which route a message names.
func (g graph) sortedArrivalKeys(queue string) []key {
	keys := slices.Collect(maps.Keys(g.arrivalKeys[queue]))
	topology.Sort(keys, func(a, b *key) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), strings.Compare(a.also, b.also), strings.Compare(a.past, b.past),
			strings.Compare(strconv.FormatBool(a.known), strconv.FormatBool(b.known)))
	})
	return keys
}
