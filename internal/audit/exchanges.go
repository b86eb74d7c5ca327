package audit

import (
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// missingExchanges finds dead-letter exchanges that do not exist. The broker does not check that when a queue is
// declared.
func missingExchanges(g graph, report func(Finding)) {
	missing := queuesBy{}
	for _, queue := range g.deadLettering() {
		exchange, _ := g.settings[queue].Text("dead-letter-exchange")
		if !g.exists(exchange) {
			missing[exchange] = append(missing[exchange], queue)
		}
	}
	for _, exchange := range missing.keys() {
		for _, group := range g.byOrigin(missing[exchange], "dead-letter-exchange") {
			report(group.finding(
				fmt.Sprintf(exchangeMissing, exchange, queueList(group.queues), g.consequence(group.queues)),
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
		queues := slices.DeleteFunc(g.classicAndQuorum(), func(queue string) bool {
			_, has := g.settings[queue].Text("dead-letter-exchange")
			_, meant := g.settings[queue].Text(setting)
			return has || !meant
		})
		for _, group := range g.byOrigin(queues, setting) {
			report(group.finding(fmt.Sprintf(exchangeUnset, setting, queueList(group.queues)), exchangeUnsetRemedy))
		}
	}
}

// unroutableExchanges finds existing dead-letter exchanges that route no message anywhere.
func unroutableExchanges(g graph, report func(Finding)) {
	type target struct{ exchange, key string }
	lost, targets := queuesBy{}, map[string]target{}
	for _, queue := range g.deadLettering() {
		exchange, next, _ := g.afterDeath(queue, unknown)
		if !g.exists(exchange) || !g.route(exchange, next).nowhere {
			continue
		}
		id := exchange + "\x00" + next.text
		lost[id] = append(lost[id], queue)
		targets[id] = target{exchange: exchange}
		if next.known {
			targets[id] = target{exchange, fmt.Sprintf(unroutableKey, next.text)}
		}
	}
	for _, id := range lost.keys() {
		for _, group := range g.byOrigin(lost[id], "dead-letter-exchange") {
			report(group.finding(
				fmt.Sprintf(unroutable, targets[id].exchange, queueList(group.queues), targets[id].key, g.consequence(group.queues)),
				unroutableRemedy))
		}
	}
}

// unboundKeys finds routing keys that messages arrive with but that lead nowhere when the messages die.
func unboundKeys(g graph, report func(Finding)) {
	lost, keys := queuesBy{}, map[string][]string{}
	for _, queue := range g.deadLettering() {
		if keys[queue] = g.lostKeys(queue); len(keys[queue]) > 0 && g.lasting(queue) {
			exchange, _ := g.settings[queue].Text("dead-letter-exchange")
			lost[exchange] = append(lost[exchange], queue)
		}
	}
	for _, exchange := range lost.keys() {
		for _, group := range g.byOrigin(lost[exchange], "dead-letter-exchange") {
			var all []string
			for _, queue := range group.queues {
				all = append(all, keys[queue]...)
			}
			report(group.finding(
				fmt.Sprintf(keyUnbound, queueList(group.queues), quotedList(topology.Distinct(all)), exchange, g.consequence(group.queues)),
				keyUnboundRemedy))
		}
	}
}

// lostKeys lists the arrival keys of a queue that its dead-letter exchange does not route.
func (g graph) lostKeys(queue string) []string {
	exchange, next, _ := g.afterDeath(queue, unknown)
	if !g.exists(exchange) || next.known || g.route(exchange, unknown).nowhere {
		return nil
	}
	var lost []string
	for _, arrived := range g.sortedArrivalKeys(queue) {
		if arrived.known && g.route(exchange, arrived).nowhere {
			lost = append(lost, arrived.text)
		}
	}
	return lost
}

// consequence says what happens to messages that die in these queues and cannot be routed.
func (g graph) consequence(queues []string) string {
	pending := 0
	for _, queue := range queues {
		if g.settings[queue].AtLeastOnce() {
			pending++
		}
	}
	switch pending {
	case 0:
		return deadLettersDropped
	case len(queues):
		return deadLettersPending
	}
	return deadLettersDroppedOrPending
}
