package audit

import (
	"fmt"
)

// shadowingPolicies finds policies that keep a dead-letter exchange away from a queue: only one
// policy applies.
func shadowingPolicies(g graph) []Finding {
	members := map[Object][]string{}
	shadowed := map[Object]string{}
	for _, name := range g.withoutDeadLetterExchange() {
		policies := g.settings[name].Policies
		if len(policies) < 2 {
			continue
		}
		for _, weaker := range policies[1:] {
			if weaker.Priority < policies[0].Priority && g.wouldDeadLetter(name, weaker) {
				origin := Object{"policy", policies[0].Name}
				members[origin], shadowed[origin] = append(members[origin], name), weaker.Name
				break
			}
		}
	}
	var found []Finding
	for _, group := range groupsOf(members) {
		stronger, weaker := group.object.Name, shadowed[group.object]
		found = append(found, group.finding(
			fmt.Sprintf(policyShadows, stronger, queueList(group.queues), weaker),
			fmt.Sprintf(policyShadowsRemedy, weaker, stronger, weaker)))
	}
	return found
}
