package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// FailedBinding leads the failed messages of a work queue to a queue of their own. It is marked where the pipeline declares
// that queue, but for names over which RabbitMQ's management API would fail.
func (n Names) FailedBinding(workQueue, failedQueue string, declared bool) topology.Binding {
	b := topology.Binding{Source: n.FailedRouteExchange(), Destination: failedQueue, RoutingKey: FailedKey(workQueue)}
	if declared && !CannotBeMarked(workQueue) {
		return marked(b, DeclaredArgument, string(n))
	}
	return b
}

// parkedFrom is the work queue whose failed messages a binding leads to a queue of their own; false if it is no such binding.
func (n Names) parkedFrom(b topology.Binding) (workQueue string, parks bool) {
	workQueue, keyed := strings.CutPrefix(b.RoutingKey, FailedKeyPrefix)
	return workQueue, keyed && b.Source == n.FailedRouteExchange() && !b.ToExchange
}

// Parks reports whether a binding leads failed messages of a work queue to a queue of their own.
func (n Names) Parks(b topology.Binding) bool {
	_, parks := n.parkedFrom(b)
	return parks
}

// DeclaredFailedQueues are the failed queues of work queues that the pipeline declares.
func (p Pipeline) DeclaredFailedQueues() []string {
	var names []string
	for _, w := range p.WorkQueues {
		if w.DeclaresFailedQueue() {
			names = append(names, w.FailedQueue)
		}
	}
	return topology.Distinct(names)
}

// FailedQueues are those of the pipeline's work queues, whoever declares them, each with one of the work queues.
func (p Pipeline) FailedQueues() map[string]string {
	found := map[string]string{}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(p.WorkQueues))) {
		if queue := p.WorkQueues[name].FailedQueue; queue != "" {
			found[queue] = name
		}
	}
	return found
}

// failedQueueOf is a failed queue of work queues. What somebody rejects there comes back, whatever its key is and whatever
// the pipeline has.
func failedQueueOf(n Names, queueType, name string) topology.Queue {
	return OwnQueue(queueType, "", topology.UnreachableDeliveryLimit,
		topology.Arguments{DeclaredByArgument: string(n), "x-dead-letter-routing-key": name})
}

func addFailedQueuesOfWorkQueues(t *topology.Topology, p Pipeline) {
	for _, name := range p.DeclaredFailedQueues() {
		t.Queues[name] = failedQueueOf(p.Names(), p.QueueType, name)
	}
	for name, w := range p.WorkQueues {
		if w.FailedQueue != "" {
			t.Bindings = append(t.Bindings, p.Names().FailedBinding(name, w.FailedQueue, w.DeclaresFailedQueue()))
		}
	}
}

// failedQueuesPolicies keep the policies of others off the failed queues of work queues. They are not part of the policy of
// the other own queues, whose pattern is bounded.
func (p Pipeline) failedQueuesPolicies() map[string]topology.Policy {
	policies := map[string]topology.Policy{}
	names := p.DeclaredFailedQueues()
	if len(names) == 0 {
		return policies
	}
	for i, group := range spread(names) {
		policies[p.Names().FailedQueuesPolicy(i)] = ranked(p.policy(p.ownContent(), ExactPattern(group)), i)
	}
	return policies
}

// recoverFailedQueues reads back where the failed messages of work queues go. A queue is taken for declared only with both
// marks, as a work queue is.
func recoverFailedQueues(p Pipeline, vhost topology.Topology) {
	n := p.Names()
	for _, b := range vhost.Bindings {
		name, parks := n.parkedFrom(b)
		w, has := p.WorkQueues[name]
		if _, ofAttachment := b.Arguments[AttachmentArgument]; parks && has && !ofAttachment {
			w.FailedQueue = b.Destination
			byUs, byOthers := n.FailedBinding(name, b.Destination, true), n.FailedBinding(name, b.Destination, false)
			w.ForeignFailedQueue = !n.isDeclared(b.Destination, byUs, byOthers, vhost)
			p.WorkQueues[name] = w
		}
	}
}

// releasedFailedQueues lists the failed queues that the pipeline has declared and that stay although it declares them no more:
// work queues of the pipeline, its attachments or another pipeline go on using them, or somebody else has re-created them.
func releasedFailedQueues(prior Pipeline, next *Pipeline, vhost topology.Topology) []string {
	names := prior.DeclaredFailedQueues()
	if len(names) == 0 {
		return nil
	}
	n, used := prior.Names(), map[string]string{}
	parked := n.ParkedByOthers(vhost)
	if next != nil {
		declared := next.DeclaredFailedQueues()
		names = slices.DeleteFunc(names, func(name string) bool { _, is := slices.BinarySearch(declared, name); return is })
		used = next.FailedQueues()
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, uses := used[name]
		return !uses && n.Declared(vhost.Queues[name]) && len(parked[name]) == 0
	})
}

// StayingFailedQueues are the failed queues that a change, to nil for a destroy, declares no more and has no use for, and that stay
// since others have failed messages there: each with the pipelines of those.
func (p Pipeline) StayingFailedQueues(next *Pipeline, vhost topology.Topology) map[string][]string {
	staying, used, parked := map[string][]string{}, map[string]string{}, p.Names().ParkedByOthers(vhost)
	if next != nil {
		used = next.FailedQueues()
	}
	for _, name := range p.DeclaredFailedQueues() {
		if _, uses := used[name]; !uses && len(parked[name]) > 0 {
			staying[name] = texts(parked[name])
		}
	}
	return staying
}

func texts(names []Names) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = string(name)
	}
	return all
}

// ParkedByOthers lists, by queue, the pipelines that have failed messages of work queues there, but for what this pipeline itself
// has bound there, which its plan shows.
func (n Names) ParkedByOthers(vhost topology.Topology) map[string][]Names {
	return parkedExcept(n.OwnsBinding, vhost)
}

// ParkedBy lists, by queue, the pipelines that have failed messages of a work queue there.
func ParkedBy(vhost topology.Topology) map[string][]Names {
	return parkedExcept(func(topology.Binding) bool { return false }, vhost)
}

// parkedExcept lists, by queue, the pipelines that have failed messages of work queues there by bindings that are not own ones.
func parkedExcept(own func(topology.Binding) bool, vhost topology.Topology) map[string][]Names {
	found := map[string][]Names{}
	for _, b := range vhost.Bindings {
		name, routes := strings.CutSuffix(b.Source, Names("").FailedRouteExchange())
		if routes && Names(name).Parks(b) && !own(b) {
			found[b.Destination] = append(found[b.Destination], Names(name))
		}
	}
	for queue, names := range found {
		found[queue] = topology.Distinct(names)
	}
	return found
}

// FailedQueuesIn lists the queues that have failed messages of the pipeline's work queues and attachments, each with those
// work queues.
func FailedQueuesIn(n Names, vhost topology.Topology) map[string][]string {
	found := map[string][]string{}
	for _, b := range vhost.Bindings {
		if workQueue, parks := n.parkedFrom(b); parks {
			found[b.Destination] = append(found[b.Destination], workQueue)
		}
	}
	return found
}
