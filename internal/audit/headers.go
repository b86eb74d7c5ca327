package audit

import (
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// matchesHeaders reports whether a binding of a headers exchange accepts a message, and whether the broker ignores a header
// of the binding: unless x-match ends in -with-x, it does not look at those that begin with "x-"
// (rabbit_exchange_type_headers).
func matchesHeaders(b topology.Binding) (match answer, ignores bool) {
	kind, _ := b.Arguments["x-match"].(string)
	match = yes
	if strings.HasPrefix(kind, "any") {
		match = no
	}
	for name := range b.Arguments {
		switch {
		case name == "x-match":
		case strings.HasPrefix(name, "x-") && !strings.HasSuffix(kind, "-with-x"):
			ignores = true
		default:
			match = maybe
		}
	}
	return match, ignores
}

// ignoredHeaders finds bindings on the routes of dead letters that are meant to match headers that the broker ignores.
func ignoredHeaders(g graph, report func(Finding)) {
	sources := map[string][]string{}
	for _, queue := range g.dying {
		for _, arrived := range g.sortedArrivalKeys(queue) {
			to, _ := g.deadLetter(queue, arrived)
			for at := range to.passed {
				if g.vhost.Exchanges[at.exchange].Type == "headers" {
					sources[at.exchange] = append(sources[at.exchange], queue)
				}
			}
		}
	}
	for exchange, queues := range sources {
		for match, effect := range map[answer]string{no: headersMatchNone, yes: headersMatchAll} {
			var to []string
			for _, b := range g.bindings[exchange] {
				if matches, ignores := matchesHeaders(b); ignores && matches == match {
					to = append(to, destination(b))
				}
			}
			if len(to) == 0 {
				continue
			}
			for _, on := range g.byOrigin(topology.Distinct(queues), "dead-letter-exchange") {
				message := fmt.Sprintf(headersIgnored, exchange, queueList(on.queues), listed(topology.Distinct(to)), effect)
				report(on.says(message, headersIgnoredRemedy))
			}
		}
	}
}
