package audit

import (
	"fmt"
	"slices"
	"strings"

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
	for _, c := range []struct {
		whole           bool
		message, remedy string
	}{{true, keyUnbound, keyUnboundRemedy}, {false, keySometimesUnbound, keySometimesUnboundRemedy}} {
		lost, keys := queuesBy{}, map[string][]string{}
		for _, queue := range g.deadLettering() {
			if keys[queue] = g.keysLostFrom(queue, c.whole); len(keys[queue]) > 0 && g.lasting(queue) && !g.isOfDelayedExchange(queue) {
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
					fmt.Sprintf(c.message, queueList(group.queues), quotedList(topology.Distinct(all)), exchange, g.consequence(group.queues)), c.remedy))
			}
		}
	}
}

// keysLostFrom lists the arrival keys of a queue that its dead-letter exchange does not route: whole sets, or an example
// of each set with some of them. Who has a message wait chooses its key for that, so no example is lost from such a queue.
func (g graph) keysLostFrom(queue string, whole bool) []string {
	exchange, next, _ := g.afterDeath(queue, unknown)
	_, waits := g.settings[queue].Number("message-ttl")
	if !g.exists(exchange) || next.known || waits && !whole || g.route(exchange, unknown).nowhere {
		return nil
	}
	var found []string
	for _, arrived := range g.sortedArrivalKeys(queue) {
		if text, all, lost := g.lostKeys(exchange, arrived); lost && all == whole {
			found = append(found, text)
		}
	}
	return found
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
