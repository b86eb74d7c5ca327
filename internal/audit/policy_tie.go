package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var deadLetterKeys = []string{"dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy", "overflow", "message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit"}

// tiedPolicies finds policies of equal priority, of which nobody knows which one applies, where that
// decides about dead letters.
func tiedPolicies(g graph) []Finding {
	members := map[Object][]string{}
	for _, name := range g.mortal() {
		policies := g.settings[name].Policies
		for i := 1; i < len(policies) && policies[i].Priority == policies[0].Priority && g.lasting(name); i++ {
			if g.tieMatters(name, policies[0], policies[i]) {
				tie := Object{"policy", policies[0].Name + "\x00" + policies[i].Name}
				members[tie] = append(members[tie], name)
			}
		}
	}
	var found []Finding
	for _, group := range groupsOf(members) {
		one, other, _ := strings.Cut(group.origin.Name, "\x00")
		group.origin.Name = one
		found = append(found, group.finding(
			fmt.Sprintf("Policies %q and %q have the same priority and both match %s, but dead-letter differently. Only one applies, and it is not defined which.", one, other, queuesNamed(group.queues)),
			"Give one of them a higher priority, or make their patterns disjoint."))
	}
	return found
}

func (g graph) tieMatters(queue string, a, b topology.NamedPolicy) bool {
	_, aSets := a.Definition["dead-letter-exchange"]
	_, bSets := b.Definition["dead-letter-exchange"]
	_, byArgument := g.settings[queue].Arguments["x-dead-letter-exchange"]
	differs := func(key string) bool { return a.Definition[key] != b.Definition[key] }
	return (aSets || bSets || byArgument) && slices.ContainsFunc(deadLetterKeys, differs)
}
