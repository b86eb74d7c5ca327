package audit

import (
	"fmt"
	"slices"
)

// missingExchanges finds dead-letter exchanges that do not exist: declaring a queue does not check.
func missingExchanges(g graph) []Finding {
	var found []Finding
	missing := set{}
	for _, queue := range g.deadLettering() {
		exchange, _ := g.settings[queue].Text("dead-letter-exchange")
		if _, exists := g.vhost.Exchanges[exchange]; !exists && exchange != "" {
			missing[exchange] = append(missing[exchange], queue)
		}
	}
	for _, exchange := range missing.keys() {
		for _, group := range g.byOrigin(missing[exchange], "dead-letter-exchange") {
			found = append(found, group.finding(
				fmt.Sprintf("The dead-letter exchange %q of %s does not exist. %s", exchange, queuesNamed(group.queues), g.fate(group.queues)),
				fmt.Sprintf("Create the exchange %q and bind a queue to it, or name an exchange that exists.", exchange)))
		}
	}
	return found
}

// unsetExchanges finds queues that are set up for dead-lettering but for the exchange.
func unsetExchanges(g graph) []Finding {
	var found []Finding
	for _, setting := range []string{"dead-letter-routing-key", "dead-letter-strategy"} {
		var queues []string
		for _, queue := range g.mortal() {
			_, has := g.settings[queue].Text("dead-letter-exchange")
			if _, meant := g.settings[queue].Text(setting); meant && !has {
				queues = append(queues, queue)
			}
		}
		for _, group := range g.byOrigin(queues, setting) {
			found = append(found, group.finding(
				fmt.Sprintf("There is a %s for %s, but no dead-letter exchange, so every message that dies is dropped.", setting, queuesNamed(group.queues)),
				"Set dead-letter-exchange as well. Write \"\" for the default exchange, which takes the name of a queue as its routing key."))
		}
	}
	return found
}

// unroutable finds dead-letter exchanges that exist but lead nowhere for any message.
func unroutable(g graph) []Finding {
	var found []Finding
	lost := set{}
	texts := map[string]string{}
	for _, queue := range g.deadLettering() {
		exchange, next, _ := g.afterDeath(queue, unknown)
		_, exists := g.vhost.Exchanges[exchange]
		if (!exists && exchange != "") || !g.route(exchange, next).nowhere {
			continue
		}
		id := exchange + "\x00" + next.text
		lost[id] = append(lost[id], queue)
		texts[id] = fmt.Sprintf("The dead-letter exchange %q leads to no queue", exchange)
		if next.known {
			texts[id] += fmt.Sprintf(" for the dead-letter routing key %q", next.text)
		}
	}
	for _, id := range lost.keys() {
		for _, group := range g.byOrigin(lost[id], "dead-letter-exchange") {
			found = append(found, group.finding(
				fmt.Sprintf("%s of %s, and no alternate exchange takes what it cannot route. %s", texts[id], queuesNamed(group.queues), g.fate(group.queues)),
				"Bind a queue to the exchange, with that key if it goes by keys, or give the exchange an alternate exchange."))
		}
	}
	return found
}

// unboundKeys finds keys with which messages arrive but with which they are not routed when they die.
func unboundKeys(g graph) []Finding {
	var found []Finding
	lost, keys := set{}, map[string][]string{}
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
			slices.Sort(all)
			found = append(found, group.finding(
				fmt.Sprintf("Messages arrive in %s with the routing key %s, keep it when they die, and the dead-letter exchange %q routes it nowhere. %s",
					queuesNamed(group.queues), listed(slices.Compact(all)), exchange, g.fate(group.queues)),
				"Bind the dead-letter queue with these keys as well, make the exchange a fanout, or set dead-letter-routing-key to a key that is bound."))
		}
	}
	return found
}

// lostKeys are those of a queue whose dead-letter exchange routes others.
func (g graph) lostKeys(queue string) []string {
	exchange, next, _ := g.afterDeath(queue, unknown)
	if _, exists := g.vhost.Exchanges[exchange]; !exists && exchange != "" || next.known || g.route(exchange, unknown).nowhere {
		return nil
	}
	var lost []string
	for _, arrived := range g.keysOf(queue) {
		if arrived.known && g.route(exchange, arrived).nowhere {
			lost = append(lost, arrived.text)
		}
	}
	return lost
}

// fate tells what becomes of messages that die in these queues and have nowhere to go.
func (g graph) fate(queues []string) string {
	held := 0
	for _, queue := range queues {
		if g.settings[queue].AtLeastOnce() {
			held++
		}
	}
	switch held {
	case 0:
		return "What dies there is dropped without a word."
	case len(queues):
		return "What dies there is kept in the queue, neither delivered nor released, and tried again every three minutes."
	}
	return "What dies there is dropped without a word, or kept for ever where the queue dead-letters at least once."
}
