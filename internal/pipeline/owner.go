package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CatchAll is the pipeline's own failed queue.
func (p Pipeline) CatchAll() string { return p.Names().FailedQueue() }

// Entrance is "": applications publish to none of a pipeline's exchanges.
func (Pipeline) Entrance() string { return "" }

// Notes are those of its name.
func (p Pipeline) Notes() stored.Notes { return p.Names().Notes() }

// ReturnsFrom is the function of that name.
func (Pipeline) ReturnsFrom(b topology.Binding, vhost topology.Topology) []string {
	return ReturnsFrom(b, vhost)
}

// FallsBack reports whether without a binding failed messages of a work queue go to the pipeline's own failed queue.
func (p Pipeline) FallsBack(b topology.Binding) bool { return p.Names().Parks(b) }

// AttachedBy is the function of that name.
func (Pipeline) AttachedBy(b topology.Binding) string { return AttachedBy(b) }

// ForceTakesBindings is true: bindings of others go along with the queues of a pipeline.
func (Pipeline) ForceTakesBindings() bool { return true }

// SharedQueues are the work queues that the pipeline declares, to which others publish, and their failed queues, which others
// empty.
func (p Pipeline) SharedQueues() []string {
	names := p.DeclaredFailedQueues()
	for name, workQueue := range p.WorkQueues {
		if workQueue.Declare {
			names = append(names, name)
		}
	}
	return names
}

// RetiredQueues are the retry queues out of the schedule that still drain.
func (p Pipeline) RetiredQueues() []string {
	var names []string
	for _, delay := range p.Retired {
		names = append(names, p.Names().RetryQueue(delay))
	}
	return names
}

// DetachedQueues lists the queues that a change detaches; next is nil for a destroy. With that, those go that dead-letter to the
// pipeline by their own arguments, too, whether they are work queues or not.
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

// ReplacedBy reports whether a change makes Terraform replace the pipeline.
func (p Pipeline) ReplacedBy(next Pipeline) bool { return p.ReplacedOver(next) != "" }

// ReplacedOver is the attribute whose change replaces the pipeline, "" if there is none.
func (p Pipeline) ReplacedOver(next Pipeline) string {
	switch {
	case p.Name != next.Name:
		return "name"
	case p.Vhost != next.Vhost:
		return "vhost"
	case p.QueueType != next.QueueType:
		return "queue_type"
	case p.EngineName() != next.EngineName():
		return "engine"
	}
	return ""
}

// SharedQueues is the failed queue that the attachment declares, which others empty.
func (a Attachment) SharedQueues() []string {
	if !a.WorkQueue.DeclaresFailedQueue() {
		return nil
	}
	return []string{a.WorkQueue.FailedQueue}
}

// RetiredQueues are none.
func (Attachment) RetiredQueues() []string { return nil }

// DetachedQueues is the queue of an attachment that is destroyed, next is nil then. A change that detaches it is a replacement.
func (a Attachment) DetachedQueues(next *Attachment, _ topology.Topology) []string {
	if next != nil {
		return nil
	}
	return []string{a.Queue}
}

// BindingsThatGo are none.
func (Attachment) BindingsThatGo(topology.Topology) []topology.Binding { return nil }

// RestoresDeadLetterRoute is false: an attachment is no route.
func (Attachment) RestoresDeadLetterRoute(topology.Topology) bool { return false }

// ReplacedBy reports whether a change makes Terraform replace the attachment.
func (a Attachment) ReplacedBy(next Attachment) bool {
	return !a.SameQueue(next) || a.Pipeline != next.Pipeline
}

// SameQueue reports whether both attach the same queue.
func (a Attachment) SameQueue(b Attachment) bool { return a.Queue == b.Queue && a.Vhost == b.Vhost }
