package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// wouldDeadLetter tells whether a policy sets a dead-letter exchange that leads away from the queue: a
// policy for all queues makes its own target a loop, from which somebody may have excepted it.
func (g graph) wouldDeadLetter(queue string, policy topology.NamedPolicy) bool {
	exchange, sets := policy.Definition["dead-letter-exchange"].(string)
	if !sets {
		return false
	}
	k := unknown
	if text, replaced := policy.Definition["dead-letter-routing-key"].(string); replaced {
		k = known(text)
	}
	return !g.route(exchange, k).sure[queue]
}

// unserved lists the queues that live longer than a connection and have no dead-letter exchange.
func (g graph) unserved() []string {
	return slices.DeleteFunc(g.mortal(), func(name string) bool {
		_, has := g.settings[name].Text("dead-letter-exchange")
		return has || !g.lasting(name)
	})
}

// inapplicablePolicies finds policies that would set a dead-letter exchange if it were not for a key
// that the queue's type does not support.
func inapplicablePolicies(g graph) []Finding {
	members := map[Object][]string{}
	for _, name := range g.unserved() {
		for _, policy := range g.settings[name].Inapplicable {
			if g.wouldDeadLetter(name, policy) {
				keys := strings.Join(topology.Unsupported(g.settings[name].Type, policy.Definition), ", ")
				origin := Object{"policy", policy.Name + "\x00" + g.settings[name].Type + "\x00" + keys}
				members[origin] = append(members[origin], name)
				break
			}
		}
	}
	var found []Finding
	for _, group := range groupsOf(members) {
		parts := strings.Split(group.origin.Name, "\x00")
		group.origin.Name = parts[0]
		found = append(found, group.finding(
			fmt.Sprintf("Policy %q matches %s and sets a dead-letter exchange, but does not apply at all: %s queues do not support %s. What is rejected there is dropped.", parts[0], queuesNamed(group.queues), parts[1], parts[2]),
			fmt.Sprintf("Add a second policy for %s queues without %s, of a priority of its own.", parts[1], parts[2])))
	}
	return found
}

// unreadablePolicies finds patterns that cannot be evaluated, about which nothing else is said.
func unreadablePolicies(g graph) []Finding {
	var found []Finding
	for _, policy := range g.lookup.Unreadable() {
		found = append(found, Finding{
			Object: Object{"policy", policy.Name}, queues: g.mortal(),
			Message: fmt.Sprintf("Which queues policy %q matches cannot be told here: its pattern %q is no regular expression that can be read, or not for each of their names. The findings are as if it matched none of those.", policy.Name, policy.Pattern),
			Remedy:  "Write the pattern more simply, without the rarer parts of PCRE; for names that are not ASCII, without \\w, \\b, (?i) and POSIX classes.",
		})
	}
	return found
}
