package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// missingExchanges finds dead-letter exchanges that do not exist. The broker does not check that when a queue is
// declared.
func missingExchanges(g graph, report func(Finding)) {
	missing := map[string][]string{}
	for _, queue := range g.dying {
		exchange, _ := g.settings[queue].Text("dead-letter-exchange")
		if !g.exists(exchange) {
			missing[exchange] = append(missing[exchange], queue)
		}
	}
	for exchange, queues := range missing {
		for _, on := range g.byOrigin(queues, "dead-letter-exchange") {
			meant := similar.Hint(exchange, maps.Keys(g.vhost.Everything().Exchanges))
			report(on.says(
				fmt.Sprintf(exchangeMissing, exchange, meant, queueList(on.queues), g.consequence(on.queues)),
				fmt.Sprintf(exchangeMissingRemedy, exchange)))
		}
	}
}

// exists reports whether the exchange exists. The default exchange always does.
func (g graph) exists(exchange string) bool {
	_, exists := g.vhost.Exchanges[exchange]
	return exists || exchange == ""
}

// unsetExchanges finds queues with dead-letter settings but without a dead-letter exchange.
func unsetExchanges(g graph, report func(Finding)) {
	for _, setting := range []string{"dead-letter-routing-key", "dead-letter-strategy"} {
		queues := where(g.classicOrQuorum, func(queue string) bool {
			_, meant := g.settings[queue].Text(setting)
			return meant && !g.deadLetters(queue)
		})
		for _, on := range g.byOrigin(queues, setting) {
			report(on.says(fmt.Sprintf(exchangeUnset, setting, queueList(on.queues)), exchangeUnsetRemedy))
		}
	}
}

// unroutableExchanges finds existing dead-letter exchanges that route no message anywhere.
func unroutableExchanges(g graph, report func(Finding)) {
	type target struct{ exchange, key string }
	lost := map[target][]string{}
	for _, queue := range g.dying {
		exchange, next, _ := g.afterDeath(queue, unknown)
		if !g.exists(exchange) || !g.route(exchange, next).nowhere {
			continue
		}
		to := target{exchange: exchange}
		if next.known {
			to.key = fmt.Sprintf(unroutableKey, next.text)
		}
		lost[to] = append(lost[to], queue)
	}
	for to, queues := range lost {
		for _, on := range g.byOrigin(queues, "dead-letter-exchange") {
			report(on.says(
				fmt.Sprintf(unroutable, to.exchange, queueList(on.queues), to.key, g.consequence(on.queues)), unroutableRemedy))
		}
	}
}

// unboundKeys finds routing keys that messages arrive with but that lead nowhere when the messages die.
func unboundKeys(g graph, report func(Finding)) {
	whole, examples := map[string][]string{}, map[string][]string{}
	for _, queue := range g.dying {
		if g.lasting(queue) && !g.isOfDelayedExchange(queue) {
			whole[queue], examples[queue] = g.keysLostFrom(queue)
		}
	}
	g.reportLostKeys(whole, keyUnbound, keyUnboundRemedy, report)
	g.reportLostKeys(examples, keySometimesUnbound, keySometimesUnboundRemedy, report)
}

// reportLostKeys reports the lost keys of each queue.
func (g graph) reportLostKeys(keys map[string][]string, message, remedy string, report func(Finding)) {
	lost := map[string][]string{}
	for queue, found := range keys {
		if len(found) > 0 {
			exchange, _ := g.settings[queue].Text("dead-letter-exchange")
			lost[exchange] = append(lost[exchange], queue)
		}
	}
	for exchange, queues := range lost {
		for _, on := range g.byOrigin(queues, "dead-letter-exchange") {
			var all []string
			for _, queue := range on.queues {
				all = append(all, keys[queue]...)
			}
			list := quotedList(topology.Distinct(all))
			report(on.says(fmt.Sprintf(message, queueList(on.queues), list, exchange, g.consequence(on.queues)), remedy))
		}
	}
}

// keysLostFrom lists the arrival keys of a queue that its dead-letter exchange does not route: whole sets, and an example
// of each set with some of them. A publisher who has a message wait chooses its key for that, so such a queue has no
// examples.
func (g graph) keysLostFrom(queue string) (whole, examples []string) {
	exchange, next, _ := g.afterDeath(queue, unknown)
	if !g.exists(exchange) || next.known || g.route(exchange, unknown).nowhere {
		return nil, nil
	}
	_, waits := g.settings[queue].Number("message-ttl")
	for _, arrived := range g.sortedArrivalKeys(queue) {
		switch text, all, lost := g.lostKeys(exchange, arrived); {
		case lost && all:
			whole = append(whole, text)
		case lost && !waits:
			examples = append(examples, text)
		}
	}
	return whole, examples
}

// lostKeys returns the keys that an exchange routes nowhere: the whole set, or an example.
func (g graph) lostKeys(exchange string, k key) (text string, whole, lost bool) {
	r := g.route(exchange, k)
	if r.nowhere || k == unknown || k.known || len(r.sure) > 0 {
		return k.String(), true, r.nowhere
	}
	const longest, most = 6, 500
	k.samples(longest, most, func(sample string) bool {
		text, lost = strings.ReplaceAll(sample, otherWord, "other"), g.route(exchange, known(sample)).nowhere && g.leaves(k.past, sample)
		return !lost
	})
	return text, false, lost
}

// leaves reports whether no binding of an exchange matches a key, so that the alternate exchange gets it.
func (g graph) leaves(exchange, text string) bool {
	return !slices.ContainsFunc(g.matching(exchange, known(text)), func(b topology.Binding) bool {
		return exchange != "" && matches(g.vhost.Exchanges[exchange], b, known(text)) != no
	})
}

// consequence says what happens to messages that die in these queues and cannot be routed.
func (g graph) consequence(queues []string) string {
	switch len(where(queues, func(queue string) bool { return g.settings[queue].AtLeastOnce() })) {
	case 0:
		return deadLettersDropped
	case len(queues):
		return deadLettersPending
	}
	return deadLettersDroppedOrPending
}
