package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// recoverWorkQueue reads a work queue's settings back.
func recoverWorkQueue(p Pipeline, name string, vhost topology.Topology) WorkQueue {
	policy, hasPolicy := PolicyOf(p.Names(), name, vhost)
	return recoverFrom(p, vhost.Queues[name], policy, hasPolicy)
}

func recoverFrom(p Pipeline, live topology.Queue, policy topology.Policy, hasPolicy bool) WorkQueue {
	n := p.Names()
	w := WorkQueue{Type: cmp.Or(live.Type, topology.Quorum), Attach: AttachPolicy}
	if !hasPolicy && live.Arguments["x-dead-letter-exchange"] == n.DeadLetterExchange() {
		w.Attach = AttachArguments
	}
	if live.Arguments[DeclaredByArgument] == string(n) {
		w.Declare, w.Arguments = true, declaredArguments(w, live)
	}
	switch {
	case hasPolicy:
		w.recoverStrategy(policy.Definition["dead-letter-strategy"])
		w.PolicyDefinition = keysOfQueue(p, w, policy.Definition)
	case w.Attach == AttachArguments:
		w.recoverStrategy(live.Arguments["x-dead-letter-strategy"])
	}
	return w
}

// policyOf finds the policy by which the pipeline attached the queue.
func PolicyOf(n Names, queue string, vhost topology.Topology) (topology.Policy, bool) {
	if policy, exists := vhost.Policies[n.QueuePolicy(queue)]; exists {
		return policy, true
	}
	for _, name := range slices.Sorted(maps.Keys(vhost.Policies)) {
		policy := vhost.Policies[name]
		if !n.isSharedPolicy(name) {
			continue
		}
		if matches, err := policy.AppliesTo(queue, ""); err == nil && matches {
			return policy, true
		}
	}
	return topology.Policy{}, false
}

func declaredArguments(w WorkQueue, live topology.Queue) topology.Arguments {
	arguments := maps.Clone(live.Arguments)
	delete(arguments, DeclaredByArgument)
	maps.DeleteFunc(arguments, func(key string, _ any) bool {
		return w.Attach == AttachArguments && (key == "x-overflow" || strings.HasPrefix(key, "x-dead-letter-"))
	})
	if len(arguments) == 0 {
		return nil
	}
	return arguments
}

func (w *WorkQueue) recoverStrategy(value any) {
	if w.Type == topology.Quorum && value != topology.AtLeastOnce {
		w.DeadLetterStrategy = topology.AtMostOnce
	}
}

// keysOfQueue are the keys of a policy that neither dead-lettering nor the whole pipeline needs, and
// null for those of the whole pipeline that it lacks.
func keysOfQueue(p Pipeline, w WorkQueue, definition topology.Arguments) topology.Arguments {
	keys := topology.Arguments{}
	for key, value := range definition {
		same := topology.Arguments{key: value}
		if _, needed := w.deadLettering(p.Names())[key]; !needed && !same.Equal(topology.Arguments{key: p.PolicyDefinition[key]}) {
			keys[key] = value
		}
	}
	for key, value := range p.PolicyDefinition {
		if _, has := definition[key]; !has && value != nil {
			keys[key] = nil
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return keys
}
