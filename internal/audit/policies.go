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
	return slices.DeleteFunc(g.classicAndQuorum(), func(name string) bool {
		_, has := g.settings[name].Text("dead-letter-exchange")
		return has || !g.lasting(name)
	})
}

// inapplicablePolicies finds policies with a dead-letter exchange that do not apply because they are for exchanges, or
// because the queue's type does not support one of their keys.
func inapplicablePolicies(g graph, report func(Finding)) {
	members := map[Object][]string{}
	for _, name := range g.withoutDeadLetterExchange() {
		for _, policy := range g.settings[name].Inapplicable {
			if g.wouldDeadLetter(name, policy) {
				kind := g.settings[name].Type
				keys := strings.Join(topology.Unsupported(kind, g.vhost.Version, policy.Definition), ", ")
				why, remedy := fmt.Sprintf(policyUnsupported, kind, keys), fmt.Sprintf(policyUnsupportedRemedy, kind, keys)
				if keys == "" {
					why, remedy = policyForExchanges, policyForExchangesRemedy
				}
				origin := Object{"policy", policy.Name + "\x00" + why + "\x00" + remedy}
				members[origin] = append(members[origin], name)
				break
			}
		}
	}
	for _, group := range groupsOf(members) {
		parts := strings.Split(group.object.Name, "\x00")
		group.object.Name = parts[0]
		report(group.finding(fmt.Sprintf(policyInapplicable, parts[0], queueList(group.queues), parts[1]), parts[2]))
	}
}

// unreadablePolicies finds patterns that cannot be evaluated. No other rule considers their policies.
func unreadablePolicies(g graph, report func(Finding)) {
	for _, policy := range g.lookup.Unreadable() {
		all := group{Object{"policy", policy.Name}, g.classicAndQuorum()}
		report(all.finding(fmt.Sprintf(policyUnreadable, policy.Name, policy.Pattern), policyUnreadableRemedy))
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
	members := map[Object][]string{}
	for _, name := range g.classicAndQuorum() {
		policies := g.settings[name].Policies
		for i := 1; i < len(policies) && policies[i].Priority == policies[0].Priority && g.lasting(name); i++ {
			if g.tieMatters(name, policies[0], policies[i]) {
				tie := Object{"policy", policies[0].Name + "\x00" + policies[i].Name}
				members[tie] = append(members[tie], name)
			}
		}
	}
	for _, group := range groupsOf(members) {
		one, other, _ := strings.Cut(group.object.Name, "\x00")
		group.object.Name = one
		report(group.finding(fmt.Sprintf(policyTie, one, other, queueList(group.queues)), policyTieRemedy))
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
	for _, group := range groupsOf(members) {
		stronger, weaker, _ := strings.Cut(group.object.Name, "\x00")
		group.object.Name = stronger
		report(group.finding(
			fmt.Sprintf(policyShadows, stronger, queueList(group.queues), weaker),
			fmt.Sprintf(policyShadowsRemedy, weaker, stronger, weaker)))
	}
}
