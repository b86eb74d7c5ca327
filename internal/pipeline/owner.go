package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Owner describes the pipeline to a change. Bindings of others are deleted with its queues if that is forced.
func (p Pipeline) Owner() stored.Owner {
	n := p.Names()
	return stored.Owner{
		Identity: p.Identity(), Guard: p.Guard(), Shared: p.SharedQueues(), Retired: p.retiredQueues(),
		CatchAll: n.FailedQueue(), Notes: n.Notes(),
		ReturnsFrom: returnsFrom, FallsBack: n.Parks, AttachedBy: AttachedBy, ForceTakesBindings: true,
	}
}

// Owner describes the attachment to a change. The objects that identify and guard are its pipeline's.
func (a Attachment) Owner() stored.Owner {
	return stored.Owner{Shared: a.AsPipeline().DeclaredFailedQueues(), FallsBack: a.Names().Parks, AttachedBy: AttachedBy}
}

// returnsFrom lists the queues whose messages come back by a return binding. It returns nil for other bindings.
func returnsFrom(b topology.Binding, vhost topology.Topology) []string {
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

// retiredQueues lists the retry queues that left the schedule and still drain.
func (p Pipeline) retiredQueues() []string {
	var names []string
	for _, delay := range p.Retired {
		names = append(names, p.Names().RetryQueue(delay))
	}
	return names
}

// Effects are what a change or a destroy does, if next is nil.
func (p Pipeline) Effects(next *Pipeline, vhost topology.Topology) stored.Effects {
	effects := stored.Effects{
		Released: p.releasedQueues(next, vhost), Detached: p.detachedQueues(next, vhost),
		FailedQueues: stayingFailedQueues(p, orNone(next), p.Names().OwnsBinding, vhost),
	}
	if next == nil {
		effects.Bindings = p.bindingsThatGo(vhost)
	} else {
		effects.RestoresRoute = p.restoresRoute(vhost)
	}
	return effects
}

// Effects are what a change or a destroy does, if next is nil. Any other change that detaches the queue is a replacement.
func (a Attachment) Effects(next *Attachment, vhost topology.Topology) stored.Effects {
	after := next.orNone()
	effects := stored.Effects{
		Released:     releasedFailedQueues(a.AsPipeline(), after, a.parks, vhost),
		FailedQueues: stayingFailedQueues(a.AsPipeline(), after, a.parks, vhost),
	}
	if next == nil {
		effects.Detached = []string{a.Queue}
	}
	return effects
}

// detachedQueues lists the work queues that a change detaches. If the pipeline is destroyed, next is nil, and the list
// also has queues outside the pipeline whose own arguments dead-letter to it.
func (p Pipeline) detachedQueues(next *Pipeline, vhost topology.Topology) []string {
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

// SameQueue reports whether both attach the same queue.
func (a Attachment) SameQueue(b Attachment) bool { return a.Queue == b.Queue && a.Vhost == b.Vhost }
