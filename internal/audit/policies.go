package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// wouldDeadLetter reports whether a policy sets a dead-letter exchange that leads away from the queue. A policy for all
// queues also covers its own target, so the target's owner can have excluded that queue.
func (g graph) wouldDeadLetter(queue string, policy topology.NamedPolicy) bool {
	exchange, sets := policy.Definition["dead-letter-exchange"].(string)
	if !sets {
		return false
	}
	k := unknown
	if text, replaced := policy.Definition["dead-letter-routing-key"].(string); replaced {
		k = known(text)
	}
	_, returns := g.route(exchange, k).queues[queue]
	return !returns
}

// withoutDeadLetterExchange lists the queues without a dead-letter exchange that outlive their connection and
// consumers.
func (g graph) withoutDeadLetterExchange() []string {
	return where(g.classicOrQuorum, func(name string) bool { return !g.deadLetters(name) && g.lasting(name) })
}

// inapplicablePolicies finds policies with a dead-letter exchange that do not apply because they are for exchanges, or
// because the queue's type does not support one of their keys.
func inapplicablePolicies(g graph, report func(Finding)) {
	type fault struct{ policy, why, remedy string }
	members := map[fault][]string{}
	for _, name := range g.withoutDeadLetterExchange() {
		for _, policy := range g.settings[name].Inapplicable {
			if g.wouldDeadLetter(name, policy) {
				kind := g.settings[name].Type
				keys := strings.Join(topology.Unsupported(kind, g.vhost.Version, policy.Definition), ", ")
				why, remedy := fmt.Sprintf(policyUnsupported, kind, keys), fmt.Sprintf(policyUnsupportedRemedy, kind, keys)
				if keys == "" {
					why, remedy = policyForExchanges, policyForExchangesRemedy
				}
				found := fault{policy.Name, why, remedy}
				members[found] = append(members[found], name)
				break
			}
		}
	}
	for found, queues := range members {
		message := fmt.Sprintf(policyInapplicable, found.policy, queueList(queues), found.why)
		report(about("policy", found.policy, queues...).says(message, found.remedy))
	}
}

// unreadablePolicies finds patterns that cannot be evaluated. No other rule considers their policies.
func unreadablePolicies(g graph, report func(Finding)) {
	for _, policy := range g.lookup.Unreadable() {
		message := fmt.Sprintf(policyUnreadable, policy.Name, policy.Pattern)
		report(about("policy", policy.Name, g.classicOrQuorum...).says(message, policyUnreadableRemedy))
	}
}

// deadLetterKeys are the policy keys that affect dead letters.
var deadLetterKeys = []string{
	"dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy", "overflow",
	"message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit",
}

// tiedPolicies finds policies with the same priority if the choice affects dead letters. The broker can apply either of
// them.
func tiedPolicies(g graph, report func(Finding)) {
	members := map[[2]string][]string{}
	for _, name := range g.classicOrQuorum {
		policies := g.settings[name].Policies
		for i := 1; i < len(policies) && policies[i].Priority == policies[0].Priority && g.lasting(name); i++ {
			if g.tieMatters(name, policies[0], policies[i]) {
				tie := [2]string{policies[0].Name, policies[i].Name}
				members[tie] = append(members[tie], name)
			}
		}
	}
	for tie, queues := range members {
		report(about("policy", tie[0], queues...).says(fmt.Sprintf(policyTie, tie[0], tie[1], queueList(queues)), policyTieRemedy))
	}
}

// tieMatters reports whether the queue dead-letters and the two policies differ in a key that affects dead letters.
func (g graph) tieMatters(queue string, a, b topology.NamedPolicy) bool {
	_, aSets := a.Definition["dead-letter-exchange"]
	_, bSets := b.Definition["dead-letter-exchange"]
	_, byArgument := g.settings[queue].Arguments["x-dead-letter-exchange"]
	differs := func(key string) bool { return a.Definition[key] != b.Definition[key] }
	return (aSets || bSets || byArgument) && slices.ContainsFunc(deadLetterKeys, differs)
}

// shadowingPolicies finds policies that keep a dead-letter exchange from a queue, because only one policy applies.
func shadowingPolicies(g graph, report func(Finding)) {
	members := map[[2]string][]string{}
	for _, name := range g.withoutDeadLetterExchange() {
		policies := g.settings[name].Policies
		for _, weaker := range policies[min(1, len(policies)):] {
			if weaker.Priority < policies[0].Priority && g.wouldDeadLetter(name, weaker) {
				pair := [2]string{policies[0].Name, weaker.Name}
				members[pair] = append(members[pair], name)
				break
			}
		}
	}
	for pair, queues := range members {
		stronger, weaker := pair[0], pair[1]
		report(about("policy", stronger, queues...).says(
			fmt.Sprintf(policyShadows, stronger, queueList(queues), weaker),
			fmt.Sprintf(policyShadowsRemedy, weaker, stronger, weaker)))
	}
}
