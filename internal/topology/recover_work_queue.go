package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// recoverWorkQueue reads a work queue's settings back.
func recoverWorkQueue(p Pipeline, name string, vhost Topology) WorkQueue {
	policy, hasPolicy := policyOf(p.Names(), name, vhost)
	return recoverFrom(p, vhost.Queues[name], policy, hasPolicy)
}

func recoverFrom(p Pipeline, live Queue, policy Policy, hasPolicy bool) WorkQueue {
	n := p.Names()
	w := WorkQueue{Type: cmp.Or(live.Type, Quorum), Attach: AttachPolicy}
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
func policyOf(n Names, queue string, vhost Topology) (Policy, bool) {
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
	return Policy{}, false
}

func declaredArguments(w WorkQueue, live Queue) Arguments {
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
	if w.Type == Quorum && value != AtLeastOnce {
		w.DeadLetterStrategy = AtMostOnce
	}
}

// keysOfQueue are the keys of a policy that neither dead-lettering nor the whole pipeline needs, and
// null for those of the whole pipeline that it lacks.
func keysOfQueue(p Pipeline, w WorkQueue, definition Arguments) Arguments {
	keys := Arguments{}
	for key, value := range definition {
		same := Arguments{key: value}
		if _, needed := w.deadLettering(p.Names())[key]; !needed && !same.equal(Arguments{key: p.PolicyDefinition[key]}) {
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
