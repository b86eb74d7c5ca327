package audit

import (
	"fmt"
	"strings"
)

// shadowingPolicies finds policies that keep a dead-letter exchange away from a queue: only one
// policy applies.
func shadowingPolicies(g graph) []Finding {
	members := map[Object][]string{}
	for _, name := range g.withoutDeadLetterExchange() {
		policies := g.settings[name].Policies
		if len(policies) < 2 {
			continue
		}
		for _, weaker := range policies[1:] {
			if weaker.Priority < policies[0].Priority && g.wouldDeadLetter(name, weaker) {
				pair := Object{"policy", policies[0].Name + "\x00" + weaker.Name}
				members[pair] = append(members[pair], name)
				break
			}
		}
	}
	var found []Finding
	for _, group := range groupsOf(members) {
		stronger, weaker, _ := strings.Cut(group.object.Name, "\x00")
		group.object.Name = stronger
		found = append(found, group.finding(
			fmt.Sprintf(policyShadows, stronger, queueList(group.queues), weaker),
			fmt.Sprintf(policyShadowsRemedy, weaker, stronger, weaker)))
	}
	return found
}
