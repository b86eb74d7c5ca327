package pipeline

import (
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

// FailedQueues lists the failed queues of the pipeline's work queues, declared or not.
func (p Pipeline) FailedQueues() []string {
	var names []string
	for _, w := range p.WorkQueues {
		if w.FailedQueue != "" {
			names = append(names, w.FailedQueue)
		}
	}
	return topology.Distinct(names)
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

// stayingFailedQueues lists the failed queues that the pipeline no longer declares and that stay. Other work queues,
// attachments or pipelines still use them, or somebody else re-created them. If only others still park messages there,
// the queue is also in parked, with the pipelines of those others.
func stayingFailedQueues(
	prior, next Pipeline, own func(topology.Binding) bool, vhost topology.Topology,
) (released []string, parked map[string][]string) {
	names := prior.DeclaredFailedQueues()
	if len(names) == 0 {
		return nil, nil
	}
	declared, used, byOthers := next.DeclaredFailedQueues(), next.FailedQueues(), ParkedExcept(own, vhost)
	parked = map[string][]string{}
	for _, name := range names {
		_, stays := slices.BinarySearch(declared, name)
		_, uses := slices.BinarySearch(used, name)
		others, foreign := byOthers[name], !prior.Names().declared(vhost.Queues[name])
		if !stays && (uses || foreign || len(others) > 0) {
			released = append(released, name)
		}
		if !uses && len(others) > 0 {
			parked[name] = others
		}
	}
	return released, parked
}

// ParkedExcept lists the pipelines that park failed messages of work queues in each queue. It leaves out own bindings,
// which a plan shows.
func ParkedExcept(own func(topology.Binding) bool, vhost topology.Topology) map[string][]string {
	found := map[string][]string{}
	for _, b := range vhost.Bindings {
		name, routes := strings.CutSuffix(b.Source, Names("").FailedRouteExchange())
		if routes && Names(name).Parks(b) && !own(b) {
			found[b.Destination] = append(found[b.Destination], name)
		}
	}
	for queue, names := range found {
		found[queue] = topology.Distinct(names)
	}
	return found
}

// FailedQueuesOf lists the queues where the pipeline and its attachments park failed messages of a work queue.
func (n Names) FailedQueuesOf(workQueue string, vhost topology.Topology) []string {
	var queues []string
	for _, b := range vhost.Bindings {
		if from, parks := n.parkedFrom(b); parks && from == workQueue {
			queues = append(queues, b.Destination)
		}
	}
	return topology.Distinct(queues)
}
