package audit

import (
	"fmt"
)

// fanOuts finds queues from which messages come back to several others at once: each attempt of one
// consumer is a new message for all of them. A queue that only listens, without retrying, may be meant
// to hear of everything.
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
		f := group.finding(
			fmt.Sprintf("What waits in queue %q comes back to all of %s, not only to the one that rejected it: each retry of one is a new message for the others, and they multiply if more than one fails.", group.origin.Name, queuesNamed(group.queues)),
			"Lead messages back to their own queue alone: a waiting queue for each of them with dead-letter-exchange = \"\" and its name as dead-letter-routing-key.")
		f.queues = append(f.queues, group.origin.Name)
		found = append(found, f)
	}
	return found
}
