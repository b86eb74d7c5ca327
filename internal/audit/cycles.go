package audit

import (
	"fmt"
	"slices"
	"strings"
)

// cycles finds circular routes without a rejection: the broker drops a message on its second visit to a queue.
func cycles(g graph, report func(Finding)) {
	known := map[string]bool{}
	for _, name := range g.deadLettering() {
		way, certain := g.wayBack(name)
		if way == nil || !g.diesByItself(name) || g.parking[name] { // parking queues have their own rules
			continue
		}
		members := slices.Sorted(slices.Values(queuesOn(way)))
		id := strings.Join(members, "\x00")
		if known[id] {
			continue
		}
		known[id] = true
		f := group{Object{"queue", name}, members}.finding(fmt.Sprintf(cycle, arrows(way)), cycleRemedy)
		if !certain || !g.allTake(way) {
			f.Severity = Warning
		}
		report(f)
	}
}

// allTake reports whether every message takes a circular route, with all of its copies. A message takes it sometimes if it
// must be displaced on the way.
func (g graph) allTake(way []place) bool {
	return !slices.ContainsFunc(way[:len(way)-1], func(at place) bool {
		_, expires := g.settings[at.queue].Number("message-ttl")
		to, _ := g.deadLetter(at.queue, at.key)
		return !expires || len(to.queues) > 1
	})
}

// loops finds queues whose rejected messages come back to them at once.
func loops(g graph, report func(Finding)) {
	for _, name := range g.deadLettering() {
		way, certain := g.wayBack(name)
		if len(way) != 2 || g.diesByItself(name) || g.parking[name] {
			continue
		}
		f := onQueue(name, fmt.Sprintf(loop, name), loopRemedy)
		if !certain {
			f.Severity = Warning
		}
		report(f)
	}
}

// deliveryLimitCycles finds circular routes that a message takes only after it reached the delivery limit.
func deliveryLimitCycles(g graph, report func(Finding)) {
	for _, name := range g.deadLettering() {
		limit, _, limited := g.settings[name].DeliveryLimit()
		way, _ := g.wayBack(name)
		if !limited || len(way) < 3 || g.diesByItself(name) {
			continue
		}
		on := group{Object{"queue", name}, queuesOn(way)}
		report(on.finding(fmt.Sprintf(limitCycle, name, limit, arrows(way)), limitCycleRemedy))
	}
}

// fanOuts finds queues that return messages to several other queues at once. Each failed attempt of one consumer is
// then a new message for all of them. A queue that does not retry can be meant to receive everything, so it does not
// count.
func fanOuts(g graph, report func(Finding)) {
	// ways has the circular routes of the queues that retry through another queue.
	ways := map[string][]place{}
	for _, name := range g.deadLettering() {
		if way, _ := g.wayBack(name); len(way) > 2 {
			ways[name] = way
		}
	}
	members := map[Object][]string{}
	for name, way := range ways {
		last := way[len(way)-2]
		to, _ := g.deadLetter(last.queue, last.key)
		for _, other := range to.sure() {
			if other != name && ways[other] != nil {
				waiting := Object{"queue", last.queue}
				members[waiting] = append(members[waiting], name, other)
			}
		}
	}
	for _, group := range groupsOf(members) {
		f := group.finding(fmt.Sprintf(fanOut, group.object.Name, queueList(group.queues)), fanOutRemedy)
		f.queues = append(f.queues, group.object.Name)
		report(f)
	}
}

// limitedWithoutExchange lists quorum queues that drop a message at their delivery limit, either explicit or default.
// Parking queues have their own rule.
func (g graph) limitedWithoutExchange(wantExplicit bool) []string {
	return slices.DeleteFunc(g.classicAndQuorum(), func(name string) bool {
		_, has := g.settings[name].Text("dead-letter-exchange")
		_, explicit, _ := g.settings[name].DeliveryLimit()
		return has || explicit != wantExplicit || !canReachLimit(g.settings[name]) || g.parking[name]
	})
}

// droppedAtLimit finds explicit delivery limits on queues without a dead-letter exchange.
func droppedAtLimit(g graph, report func(Finding)) {
	for _, group := range g.byOrigin(g.limitedWithoutExchange(true), "delivery-limit") {
		limit, _, _ := g.settings[group.queues[0]].DeliveryLimit()
		report(group.finding(fmt.Sprintf(limitDrops, limit, queueList(group.queues)), limitDropsRemedy))
	}
}

// droppedAtDefaultLimit reports one finding for all queues, because they do not set the limit themselves.
func droppedAtDefaultLimit(g graph, report func(Finding)) {
	if names := g.limitedWithoutExchange(false); len(names) > 0 {
		limit, _, _ := g.settings[names[0]].DeliveryLimit()
		all := group{Object{"vhost", g.vhost.Name}, names}
		report(all.finding(fmt.Sprintf(defaultLimit, limit, queueList(names)), defaultLimitRemedy))
	}
}

// negativeLimits finds negative delivery limits, which mean no limit only on newer brokers.
func negativeLimits(g graph, report func(Finding)) {
	if !g.vhost.Version.Before(4, 0) {
		return
	}
	queues := slices.DeleteFunc(g.classicAndQuorum(), func(name string) bool {
		limit, explicit, _ := g.settings[name].DeliveryLimit()
		return !explicit || limit >= 0
	})
	for _, group := range g.byOrigin(queues, "delivery-limit") {
		report(group.finding(fmt.Sprintf(negativeLimit, queueList(group.queues)), negativeLimitRemedy))
	}
}
