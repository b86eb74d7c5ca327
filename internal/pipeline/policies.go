package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DefaultPolicyPriority is the priority of a pipeline's policies unless it is configured.
const DefaultPolicyPriority = 1000

// addPolicies attaches the work queues and shields the pipeline's own ones. Brokers match every policy
// against every queue at each change, so policies are few: the largest group of queues that need the
// same content shares one, and only what differs from it has a policy of its own.
func addPolicies(t topology.Topology, p Pipeline) {
	names := p.AttachedByPolicy()
	shared := sharedContent(p, names)
	var sharing []string
	for _, name := range names {
		definition := p.PolicyContent(name)
		if definition.Key() == shared {
			sharing = append(sharing, name)
			continue
		}
		t.Policies[p.Names().QueuePolicy(name)] = exactPolicy(definition, p.PolicyPriority, name)
	}
	if len(sharing) > 0 {
		addSpread(t, p.Names().SharedPolicy, exactPolicy(p.PolicyContent(sharing[0]), p.PolicyPriority), sharing)
	}
	addShield(t, p)
}

// addSpread adds a policy for queues that need the same content, or several where one pattern cannot
// hold them.
func addSpread(t topology.Topology, name func(i int) string, policy topology.Policy, queues []string) {
	for i, group := range spread(queues) {
		if len(group) > 0 {
			policy.Pattern, policy.Rank = exactPattern(group), i
			t.Policies[name(i)] = policy
		}
	}
}

func (p Pipeline) AttachedByPolicy() []string {
	names := slices.Sorted(maps.Keys(p.WorkQueues))
	return slices.DeleteFunc(names, func(name string) bool { return !p.WorkQueues[name].ByPolicy() })
}

// sharedContent finds the content that most work queues need; of two, the one that comes first by
// its text, so that the choice is a function of the configuration alone.
func sharedContent(p Pipeline, names []string) string {
	count := map[string]int{}
	for _, name := range names {
		count[p.PolicyContent(name).Key()]++
	}
	best := ""
	for _, key := range slices.Sorted(maps.Keys(count)) {
		if count[key] > count[best] || best == "" {
			best = key
		}
	}
	return best
}

// policyDefinition is the policy that a work queue needs.
func (p Pipeline) PolicyContent(workQueue string) topology.Arguments {
	w := p.WorkQueues[workQueue]
	definition := p.ExtraKeys(w)
	maps.Copy(definition, w.deadLettering(p.Names()))
	return definition
}

// extraKeys are those that the user wrote.
func (p Pipeline) ExtraKeys(w WorkQueue) topology.Arguments {
	keys := topology.Arguments{}
	maps.Copy(keys, p.PolicyDefinition)
	maps.Copy(keys, w.PolicyDefinition)
	maps.DeleteFunc(keys, func(_ string, value any) bool { return value == nil })
	return keys
}

func exactPolicy(definition topology.Arguments, priority int, queues ...string) topology.Policy {
	return topology.Policy{
		Pattern: exactPattern(queues),
		// RabbitMQ before 3.12 knows no finer word.
		ApplyTo:    "queues",
		Priority:   priority,
		Definition: definition,
	}
}
