package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CatchAll returns the name of the pipeline's own failed queue.
func (p Pipeline) CatchAll() string { return p.Names().FailedQueue() }

// Entrance returns "", because applications do not publish to a pipeline's exchanges.
func (Pipeline) Entrance() string { return "" }

// Notes returns the exchanges that keep the pipeline's notes.
func (p Pipeline) Notes() stored.Notes { return p.Names().Notes() }

// ReturnsFrom lists the queues whose messages come back by a return binding. It returns nil for other bindings.
func (Pipeline) ReturnsFrom(b topology.Binding, vhost topology.Topology) []string {
	n, returns := ReturnedBy(b)
	if !returns {
		return nil
	}
	queues := []string{n.Inbox()}
	for name, queue := range vhost.Queues {
		if n.IsRetryQueue(name, queue) {
			queues = append(queues, name)
		}
	}
	return queues
}

// FallsBack reports whether failed messages go to the pipeline's own failed queue if the binding is missing.
func (p Pipeline) FallsBack(b topology.Binding) bool { return p.Names().Parks(b) }

// AttachedBy calls the function [AttachedBy].
func (Pipeline) AttachedBy(b topology.Binding) string { return AttachedBy(b) }

// RestoresBindings returns false: bindings of others prevent the re-creation of a queue.
func (Pipeline) RestoresBindings() bool { return false }

// ForceTakesBindings returns true: bindings of others are deleted with the pipeline's queues.
func (Pipeline) ForceTakesBindings() bool { return true }

// SharedQueues lists the declared work queues and their failed queues. Others publish to the work queues and empty the
// failed queues.
func (p Pipeline) SharedQueues() []string {
	names := p.DeclaredFailedQueues()
	for name, workQueue := range p.WorkQueues {
		if workQueue.Declare {
			names = append(names, name)
		}
	}
	return names
}

// RetiredQueues lists the retry queues that left the schedule and still drain.
func (p Pipeline) RetiredQueues() []string {
	var names []string
	for _, delay := range p.Retired {
		names = append(names, p.Names().RetryQueue(delay))
	}
	return names
}

// DetachedQueues lists the work queues that a change detaches. If the pipeline is destroyed, next is nil, and the list
// also has queues outside the pipeline whose own arguments dead-letter to it.
func (p Pipeline) DetachedQueues(next *Pipeline, vhost topology.Topology) []string {
	queues := slices.Collect(maps.Keys(p.WorkQueues))
	if next != nil {
		queues = slices.DeleteFunc(queues, func(name string) bool { _, stays := next.WorkQueues[name]; return stays })
	} else {
		for name, queue := range vhost.Queues {
			exchange, _ := queue.Arguments["x-dead-letter-exchange"].(string)
			if p.DeadLettersTo(exchange) {
				queues = append(queues, name)
			}
		}
	}
	return topology.Distinct(queues)
}

// SharedQueues returns the failed queue that the attachment declares and others empty.
func (a Attachment) SharedQueues() []string {
	if !a.WorkQueue.DeclaresFailedQueue() {
		return nil
	}
	return []string{a.WorkQueue.FailedQueue}
}

// RetiredQueues returns nil: an attachment has no schedule.
func (Attachment) RetiredQueues() []string { return nil }

// DetachedQueues returns the queue of an attachment that is destroyed; next is nil then. Any other change that detaches
// it is a replacement.
func (a Attachment) DetachedQueues(next *Attachment, _ topology.Topology) []string {
	if next != nil {
		return nil
	}
	return []string{a.Queue}
}

// BindingsThatGo returns nil: no bindings of others depend on an attachment.
func (Attachment) BindingsThatGo(topology.Topology) []topology.Binding { return nil }

// RestoresDeadLetterRoute returns false: an attachment is no route for dead letters.
func (Attachment) RestoresDeadLetterRoute(topology.Topology) bool { return false }

// SameQueue reports whether both attach the same queue.
func (a Attachment) SameQueue(b Attachment) bool { return a.Queue == b.Queue && a.Vhost == b.Vhost }
