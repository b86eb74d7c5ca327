package audit

import (
	"fmt"
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// temporaryRoutes finds lasting queues whose dead letters are lost once a temporary exchange or queue is gone.
func temporaryRoutes(g graph, report func(Finding)) {
	lasting := g.withoutTemporary()
	if len(lasting.settings) == len(g.settings) && len(lasting.vhost.Exchanges) == len(g.vhost.Exchanges) {
		return
	}
	through, parts := map[string][]string{}, map[string][]string{}
	for _, queue := range g.dying {
		if s := g.settings[queue]; temporary(s.Transient, s.AutoDelete, s.Exclusive) != "" {
			continue
		}
		for _, arrived := range g.sortedArrivalKeys(queue) {
			exchange, next, _ := g.afterDeath(queue, arrived)
			_, _, lost := g.lostKeys(exchange, next)
			if _, _, lostLater := lasting.lostKeys(exchange, next); lostLater && !lost {
				parts[queue] = append(parts[queue], g.temporaryOn(g.route(exchange, next))...)
			}
		}
		if found := topology.Distinct(parts[queue]); len(found) > 0 {
			through[listed(found)] = append(through[listed(found)], queue)
		}
	}
	for found, queues := range through {
		for _, on := range g.byOrigin(queues, "dead-letter-exchange") {
			report(on.says(fmt.Sprintf(routeTemporary, queueList(on.queues), found), routeTemporaryRemedy))
		}
	}
}

// withoutTemporary returns the graph when all temporary exchanges and queues are gone.
func (g graph) withoutTemporary() graph {
	g.routes, g.settings, g.vhost.Exchanges = map[stop]routes{}, maps.Clone(g.settings), maps.Clone(g.vhost.Exchanges)
	maps.DeleteFunc(g.settings, func(_ string, s topology.Settings) bool {
		return temporary(s.Transient, s.AutoDelete, s.Exclusive) != ""
	})
	maps.DeleteFunc(g.vhost.Exchanges, func(_ string, e topology.Exchange) bool {
		return temporary(e.Transient, e.AutoDelete, false) != ""
	})
	return g
}

// temporaryOn describes the temporary exchanges and queues on a route.
func (g graph) temporaryOn(r routes) []string {
	var found []string
	describe := func(kind, name, why string) {
		if why != "" {
			found = append(found, quoted(kind, name)+why)
		}
	}
	for at := range r.passed {
		e := g.vhost.Exchanges[at.exchange]
		describe("exchange", at.exchange, temporary(e.Transient, e.AutoDelete, false))
	}
	for _, at := range r.arrivals {
		s := g.settings[at.queue]
		describe("queue", at.queue, temporary(s.Transient, s.AutoDelete, s.Exclusive))
	}
	return found
}

// temporary says why an object does not last, or nothing.
func temporary(transient, autoDelete, exclusive bool) string {
	switch {
	case exclusive:
		return " (exclusive)"
	case autoDelete:
		return " (auto-delete)"
	case transient:
		return " (not durable)"
	}
	return ""
}
