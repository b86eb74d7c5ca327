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
		if way == nil || !g.diesByItself(name) {
			continue
		}
		members := slices.Sorted(slices.Values(queuesOf(way)))
		id := strings.Join(members, "\x00")
		if known[id] {
			continue
		}
		known[id] = true
		f := onQueue(name,
			fmt.Sprintf("Messages that expire or are displaced go round: %s. A broker drops a message that comes to a queue a second time without having been rejected in between; a queue that dead-letters at least once keeps it for ever.", written(way)),
			"Lead what expires or is displaced elsewhere than what is rejected: take message-ttl or max-length away from the queue that is worked on, or have a process of your own publish messages back.")
		f.queues = members
		found = append(found, f)
	}
	return found
}

// loops finds queues that get their own rejected messages back at once.
func loops(g graph) []Finding {
	var found []Finding
	for _, name := range g.deadLettering() {
		if way := g.wayBack(name); len(way) == 2 && !g.diesByItself(name) {
			found = append(found, onQueue(name,
				fmt.Sprintf("Queue %q gets back what is rejected from it, at once and without end: its dead-letter exchange leads to the queue itself. One message that always fails keeps the broker and its consumers busy.", name),
				"Remove the binding, or let the queue dead-letter to an exchange that it is not bound to."))
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
		f := onQueue(name,
			fmt.Sprintf("A message that is returned to queue %q more than %d times dead-letters and goes round: %s. Nobody has rejected it, so the broker drops it when it comes back; a queue that dead-letters at least once keeps it for ever.", name, limit, written(way)),
			"Have consumers reject what they cannot process (requeue = false) before the delivery limit is reached, and raise the limit; or route by reason, so that only what was rejected comes back.")
		f.queues = queuesOf(way)
		found = append(found, f)
	}
	return found
}
