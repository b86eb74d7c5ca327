package audit

import (
	"fmt"
	"slices"
	"strings"
)

// cycles finds ways back to a queue without a rejection: the broker drops a message on its second visit.
func cycles(g graph) []Finding {
	var found []Finding
	known := map[string]bool{}
	for _, name := range g.deadLettering() {
		way := g.wayBack(name)
		if way == nil || !g.diesByItself(name) || g.parking[name] { // parking queues have rules of their own
			continue
		}
		members := slices.Sorted(slices.Values(queuesOn(way)))
		id := strings.Join(members, "\x00")
		if known[id] {
			continue
		}
		known[id] = true
		f := onQueue(name, fmt.Sprintf(cycle, arrows(way)), cycleRemedy)
		f.queues = members
		found = append(found, f)
	}
	return found
}

// loops finds queues that get their own rejected messages back at once.
func loops(g graph) []Finding {
	var found []Finding
	for _, name := range g.deadLettering() {
		if way := g.wayBack(name); len(way) == 2 && !g.diesByItself(name) && !g.parking[name] {
			found = append(found, onQueue(name, fmt.Sprintf(loop, name), loopRemedy))
		}
	}
	return found
}

// deliveryLimitCycles finds ways back on which only the delivery limit sends a message.
func deliveryLimitCycles(g graph) []Finding {
	var found []Finding
	for _, name := range g.deadLettering() {
		limit, _, limited := g.settings[name].DeliveryLimit()
		way := g.wayBack(name)
		if !limited || len(way) < 3 || g.diesByItself(name) {
			continue
		}
		f := onQueue(name, fmt.Sprintf(limitCycle, name, limit, arrows(way)), limitCycleRemedy)
		f.queues = queuesOn(way)
		found = append(found, f)
	}
	return found
}

// fanOuts finds queues from which messages come back to several others at once: each attempt of one
// consumer is a new message for all of them. A queue that only listens, without retrying, may be meant
// to receive everything.
func fanOuts(g graph) []Finding {
	// ways are those of the queues that retry by way of another one.
	ways := map[string][]place{}
	for _, name := range g.deadLettering() {
		if way := g.wayBack(name); len(way) > 2 {
			ways[name] = way
		}
	}
	members := map[Object][]string{}
	for name, way := range ways {
		last := way[len(way)-2]
		to, _ := g.deadLetter(last.queue, last.key)
		for _, other := range to.names() {
			if other != name && ways[other] != nil {
				waiting := Object{"queue", last.queue}
				members[waiting] = append(members[waiting], name, other)
			}
		}
	}
	var found []Finding
	for _, group := range groupsOf(members) {
		f := group.finding(fmt.Sprintf(fanOut, group.object.Name, queueList(group.queues)), fanOutRemedy)
		f.queues = append(f.queues, group.object.Name)
		found = append(found, f)
	}
	return found
}
