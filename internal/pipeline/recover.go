package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Recover reads a pipeline's specification back from its vhost. Engine, schedule, attempts and reasons come from the
// definition on the broker, and work queues from the return bindings. Owned finds the retired retry queues, whose
// delays are not in the schedule.
func Recover(name, vhostName string, vhost topology.Topology) (Pipeline, error) {
	p, definition, err := Defined(name, vhostName, vhost)
	if err != nil {
		return p, err
	}
	for _, binding := range vhost.Bindings {
		if p.Names().Returns(binding) {
			workQueue := WorkQueue{MaxAttempts: definition.QueueMaxAttempts[binding.Destination]}
			workQueue.TakeOverFrom, _ = takenOverFrom(binding)
			p.WorkQueues[binding.Destination] = workQueue
		}
	}
	recoverFailedQueues(p, vhost)
	shared := p.Names().sharedPolicies(vhost)
	for name := range p.WorkQueues {
		live := vhost.Queues[name]
		policy, hasPolicy := policyOf(p.Names(), name, shared, vhost)
		w := recoverFrom(p, name, live, policy, hasPolicy)
		if p.Names().Declares(name, vhost) {
			w.Declare, w.Arguments = true, declaredArguments(p, name, w, live)
		}
		p.WorkQueues[name] = w
	}
	return p, nil
}

// Defined reads a pipeline except its work queues from its definition.
func Defined(name, vhostName string, vhost topology.Topology) (Pipeline, Definition, error) {
	p := Pipeline{Name: name, Vhost: vhostName, WorkQueues: map[string]WorkQueue{}}
	n := p.Names()
	definition, err := n.DefinitionPlace().Recover(vhost)
	if err != nil {
		return p, definition, err
	}
	definition.describe(&p)
	p.QueueType = vhost.Queues[n.FailedQueue()].Type
	return p, definition, nil
}

// declared reports whether the pipeline created the queue. The mark stays when the queue is released.
func (n Names) declared(queue topology.Queue) bool {
	return queue.Arguments[DeclaredByArgument] == string(n)
}

// Declares reports whether the pipeline declares the work queue and has not released it.
func (n Names) Declares(workQueue string, vhost topology.Topology) bool {
	return n.isDeclared(workQueue, n.DeclaredBinding(workQueue), n.ReturnBinding(workQueue), vhost)
}

// isDeclared reports whether the pipeline declares the queue and has not released it. An interrupted change in either
// direction leaves both bindings, and counts as released.
func (n Names) isDeclared(queue string, declared, released topology.Binding, vhost topology.Topology) bool {
	return n.declared(vhost.Queues[queue]) &&
		slices.ContainsFunc(vhost.Bindings, declared.Equal) && !slices.ContainsFunc(vhost.Bindings, released.Equal)
}

func recoverFrom(p Pipeline, name string, live topology.Queue, policy topology.Policy, hasPolicy bool) WorkQueue {
	w := p.WorkQueues[name]
	w.Type, w.Attach = cmp.Or(live.Type, topology.Quorum), AttachPolicy
	switch {
	case hasPolicy:
		w.recoverStrategy(policy.Definition["dead-letter-strategy"])
		w.PolicyDefinition = keysOfQueue(p, name, w, policy.Definition)
	case live.Arguments["x-dead-letter-exchange"] == p.DeadLetterExchangeOf(w):
		w.Attach = AttachArguments
		w.recoverStrategy(live.Arguments["x-dead-letter-strategy"])
	}
	return w
}

// PolicyOf finds the policy that attaches the queue to the pipeline.
func PolicyOf(n Names, queue string, vhost topology.Topology) (topology.Policy, bool) {
	return policyOf(n, queue, n.sharedPolicies(vhost), vhost)
}

func policyOf(n Names, queue string, shared topology.Matcher, vhost topology.Topology) (topology.Policy, bool) {
	if policy, exists := vhost.Policies[n.QueuePolicy(queue)]; exists {
		return policy, true
	}
	if policies, _ := shared.Queue(queue, "", topology.Version{}); len(policies) > 0 {
		return policies[0].Policy, true
	}
	return topology.Policy{}, false
}

// sharedPolicies returns the policies that cover several work queues of the pipeline.
func (n Names) sharedPolicies(vhost topology.Topology) topology.Matcher {
	shared := maps.Clone(vhost.Policies)
	maps.DeleteFunc(shared, func(name string, _ topology.Policy) bool { return !n.isSharedPolicy(name) })
	return topology.NewMatcher(shared)
}

func declaredArguments(p Pipeline, name string, w WorkQueue, live topology.Queue) topology.Arguments {
	arguments := maps.Clone(live.Arguments)
	delete(arguments, DeclaredByArgument)
	needed := p.neededKeys(name, w)
	maps.DeleteFunc(arguments, func(key string, _ any) bool {
		_, isNeeded := needed[strings.TrimPrefix(key, "x-")]
		return w.Attach == AttachArguments && (isNeeded || key == "x-overflow" || strings.HasPrefix(key, "x-dead-letter-"))
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

// keysOfQueue returns the policy keys that were written for this queue alone. It leaves out the keys for dead-lettering
// and for the whole pipeline. A key of the whole pipeline that the policy lacks gets null.
func keysOfQueue(p Pipeline, name string, w WorkQueue, definition topology.Arguments) topology.Arguments {
	keys := topology.Arguments{}
	for key, value := range definition {
		same := topology.Arguments{key: value}
		if _, needed := p.neededKeys(name, w)[key]; !needed && !same.Equal(topology.Arguments{key: p.PolicyDefinition[key]}) {
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
