package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// FailedBinding routes the failed messages of a work queue to its own failed queue. If the pipeline declares that
// queue, the binding is marked, unless RabbitMQ's management API would fail on the name.
func (n Names) FailedBinding(workQueue, failedQueue string, declared bool) topology.Binding {
	b := topology.Binding{Source: n.FailedRouteExchange(), Destination: failedQueue, RoutingKey: FailedKey(workQueue)}
	if declared && !CannotBeMarked(workQueue) {
		return marked(b, DeclaredArgument, string(n))
	}
	return b
}

// parkedFrom returns the work queue whose failed messages the binding routes to its own failed queue. It returns false
// for other bindings.
func (n Names) parkedFrom(b topology.Binding) (workQueue string, parks bool) {
	workQueue, keyed := strings.CutPrefix(b.RoutingKey, FailedKeyPrefix)
	return workQueue, keyed && b.Source == n.FailedRouteExchange() && !b.ToExchange
}

// Parks reports whether a binding routes failed messages of a work queue to its own failed queue.
func (n Names) Parks(b topology.Binding) bool {
	_, parks := n.parkedFrom(b)
	return parks
}

// DeclaredFailedQueues lists the failed queues of work queues that the pipeline declares.
func (p Pipeline) DeclaredFailedQueues() []string {
	var names []string
	for _, w := range p.WorkQueues {
		if w.DeclaresFailedQueue() {
			names = append(names, w.FailedQueue)
		}
	}
	return topology.Distinct(names)
}

// FailedQueues returns the failed queues of the pipeline's work queues, declared or not. Each value is one of its work
// queues.
func (p Pipeline) FailedQueues() map[string]string {
	found := map[string]string{}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(p.WorkQueues))) {
		if queue := p.WorkQueues[name].FailedQueue; queue != "" {
			found[queue] = name
		}
	}
	return found
}

// failedQueueOf returns a failed queue for work queues. Rejected messages come back to it, regardless of their routing
// key and of the pipeline's other objects.
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

// recoverFailedQueues reads the failed queues of work queues back. Like a work queue, a failed queue counts as declared
// only with both marks.
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

// releasedFailedQueues lists the failed queues that the pipeline no longer declares and that stay. Other work queues,
// attachments or pipelines still use them, or somebody else re-created them.
func releasedFailedQueues(prior, next Pipeline, own func(topology.Binding) bool, vhost topology.Topology) []string {
	names := prior.DeclaredFailedQueues()
	if len(names) == 0 {
		return nil
	}
	declared, used, parked := next.DeclaredFailedQueues(), next.FailedQueues(), parkedExcept(own, vhost)
	return slices.DeleteFunc(names, func(name string) bool {
		_, stays := slices.BinarySearch(declared, name)
		_, uses := used[name]
		return stays || !uses && prior.Names().Declared(vhost.Queues[name]) && len(parked[name]) == 0
	})
}

// stayingFailedQueues returns the failed queues that a change drops but that others still park messages in. Each value
// lists the pipelines of those others.
func stayingFailedQueues(prior, next Pipeline, own func(topology.Binding) bool, vhost topology.Topology) map[string][]string {
	names := prior.DeclaredFailedQueues()
	if len(names) == 0 {
		return nil
	}
	staying, used, parked := map[string][]string{}, next.FailedQueues(), parkedExcept(own, vhost)
	for _, name := range names {
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

// ParkedByOthers lists the pipelines that park failed messages of work queues in each queue. It leaves out this
// pipeline's own bindings, which its plan shows.
func (n Names) ParkedByOthers(vhost topology.Topology) map[string][]Names {
	return parkedExcept(n.OwnsBinding, vhost)
}

// ParkedBy lists the pipelines that park failed messages of work queues in each queue.
func ParkedBy(vhost topology.Topology) map[string][]Names {
	return parkedExcept(func(topology.Binding) bool { return false }, vhost)
}

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

// FailedQueuesIn lists the work queues, of the pipeline and its attachments, that park their messages in each failed
// queue.
func FailedQueuesIn(n Names, vhost topology.Topology) map[string][]string {
	found := map[string][]string{}
	for _, b := range vhost.Bindings {
		if workQueue, parks := n.parkedFrom(b); parks {
			found[b.Destination] = append(found[b.Destination], workQueue)
		}
	}
	return found
}
