package audit

import (
	"fmt"
)

// fanOuts finds places from which messages come back to several queues at once: each attempt of one
// consumer is a new message for all the others.
func fanOuts(g graph) []Finding {
	returning := map[place][]string{}
	for _, name := range g.deadLettering() {
		if way := g.wayBack(name); len(way) > 2 {
			last := way[len(way)-2]
			returning[last] = append(returning[last], name)
		}
	}
	members := map[Object][]string{}
	for last, names := range returning {
		if len(names) > 1 {
			members[Object{"queue", last.queue}] = append(members[Object{"queue", last.queue}], names...)
		}
	}
	var found []Finding
	for _, group := range groupsOf(members) {
		f := group.finding(
			fmt.Sprintf("What waits in queue %q comes back to all of %s, not only to the one that it came from: each retry of one is a new message for the others, and they multiply if more than one fails.", group.origin.Name, queuesNamed(group.queues)),
			"Lead messages back to their own queue alone: a waiting queue for each of them with dead-letter-exchange = \"\" and its name as dead-letter-routing-key.")
		f.queues = append(f.queues, group.origin.Name)
		found = append(found, f)
	}
	return found
}
