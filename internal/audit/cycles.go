package audit

import (
	"fmt"
	"slices"
	"strings"
)

// cycles finds circular routes without a rejection: the broker drops a message on its second visit to a queue.
func cycles(g graph, report func(Finding)) {
	known := map[string]bool{}
	for _, c := range g.circles {
		members := slices.Sorted(slices.Values(c.queues()))
		id := strings.Join(members, "\x00")
		if !g.diesByItself(c.start) || g.parking[c.start] || known[id] { // parking queues have their own rules
			continue
		}
		known[id] = true
		f := about("queue", c.start, members...).says(fmt.Sprintf(cycle, c), cycleRemedy)
		report(f.warningUnless(c.certain && g.allTake(c)))
	}
}

// allTake reports whether every message takes a circular route, with all of its copies. A message takes it sometimes if it
// must be displaced on the way.
func (g graph) allTake(c circle) bool {
	return !slices.ContainsFunc(c.way, func(at place) bool {
		_, expires := g.settings[at.queue].Number("message-ttl")
		to, _ := g.deadLetter(at.queue, at.key)
		return !expires || len(to.queues) > 1
	})
}

// loops finds queues whose rejected messages come back to them at once.
func loops(g graph, report func(Finding)) {
	for _, c := range g.circles {
		if len(c.way) == 1 && !g.diesByItself(c.start) && !g.parking[c.start] {
			report(about("queue", c.start).says(fmt.Sprintf(loop, c.start), loopRemedy).warningUnless(c.certain))
		}
	}
}

// deliveryLimitCycles finds circular routes that a message takes only after it reached the delivery limit.
func deliveryLimitCycles(g graph, report func(Finding)) {
	for _, c := range g.circles {
		limit, _, limited := g.settings[c.start].DeliveryLimit()
		if limited && len(c.way) > 1 && !g.diesByItself(c.start) {
			report(about("queue", c.start, c.queues()...).says(fmt.Sprintf(limitCycle, c.start, limit, c), limitCycleRemedy))
		}
	}
}

// fanOuts finds queues that return messages to several other queues at once. Each failed attempt of one consumer is
// then a new message for all of them. A queue that does not retry can be meant to receive everything, so it does not
// count.
func fanOuts(g graph, report func(Finding)) {
	// last has the last places on the circular routes of the queues that retry through another queue.
	last := map[string]place{}
	for _, c := range g.circles {
		if len(c.way) > 1 {
			last[c.start] = c.way[len(c.way)-1]
		}
	}
	members := map[Object][]string{}
	for name, at := range last {
		to, _ := g.deadLetter(at.queue, at.key)
		for _, other := range to.sure {
			if _, retries := last[other]; retries && other != name {
				waiting := Object{"queue", at.queue}
				members[waiting] = append(members[waiting], name, other)
			}
		}
	}
	for _, on := range aboutEach(members) {
		f := on.says(fmt.Sprintf(fanOut, on.Object.Name, queueList(on.queues)), fanOutRemedy)
		f.queues = append(f.queues, on.Object.Name)
		report(f)
	}
}

// limitedWithoutExchange lists quorum queues that drop a message at their delivery limit, either explicit or default.
// Parking queues have their own rule.
func (g graph) limitedWithoutExchange(wantExplicit bool) []string {
	return where(g.classicOrQuorum, func(name string) bool {
		_, explicit, _ := g.settings[name].DeliveryLimit()
		return !g.deadLetters(name) && explicit == wantExplicit && canReachLimit(g.settings[name]) && !g.parking[name]
	})
}

// droppedAtLimit finds explicit delivery limits on queues without a dead-letter exchange.
func droppedAtLimit(g graph, report func(Finding)) {
	for _, on := range g.byOrigin(g.limitedWithoutExchange(true), "delivery-limit") {
		limit, _, _ := g.settings[on.queues[0]].DeliveryLimit()
		report(on.says(fmt.Sprintf(limitDrops, limit, queueList(on.queues)), limitDropsRemedy))
	}
}

// droppedAtDefaultLimit reports one finding for all queues, because they do not set the limit themselves.
func droppedAtDefaultLimit(g graph, report func(Finding)) {
	if names := g.limitedWithoutExchange(false); len(names) > 0 {
		limit, _, _ := g.settings[names[0]].DeliveryLimit()
		report(about("vhost", g.vhost.Name, names...).says(fmt.Sprintf(defaultLimit, limit, queueList(names)), defaultLimitRemedy))
	}
}

// negativeLimits finds negative delivery limits, which mean no limit only on newer brokers.
func negativeLimits(g graph, report func(Finding)) {
	if !g.vhost.Version.Before(4, 0) {
		return
	}
	queues := where(g.classicOrQuorum, func(name string) bool {
		limit, explicit, _ := g.settings[name].DeliveryLimit()
		return explicit && limit < 0
	})
	for _, on := range g.byOrigin(queues, "delivery-limit") {
		report(on.says(fmt.Sprintf(negativeLimit, queueList(on.queues)), negativeLimitRemedy))
	}
}
