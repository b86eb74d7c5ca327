package pipeline

import (
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Owned picks out of a whole vhost what belongs to the pipeline. Objects of others are left out even where they meet the
// pipeline's: a foreign queue bound to the dead-letter exchange is not ours, nor is an exchange that only another engine
// makes. Retry queues of any delay count, so that those that left the schedule are found again; if the specification does
// not know a delay, the queue must dead-letter to the pipeline's return exchange.
func (p Pipeline) Owned(vhost topology.Topology) topology.Topology {
	n, owned, made := p.Names(), topology.New(), ExpandExchanges(p)
	for name, exchange := range vhost.Exchanges {
		if _, makes := made[name]; makes {
			owned.Exchanges[name] = exchange
		}
	}
	known := p.Expand().Queues
	for name, queue := range vhost.Queues {
		if _, isKnown := known[name]; isKnown || n.IsOwnQueue(name, queue) {
			owned.Queues[name] = queue
		}
	}
	for _, binding := range vhost.Bindings {
		if _, makes := made[binding.Source]; makes && n.OwnsBinding(binding) {
			owned.Bindings = append(owned.Bindings, binding)
		}
	}
	topology.SortBindings(owned.Bindings)
	for name, policy := range vhost.Policies {
		if n.ownsPolicy(name) {
			owned.Policies[name] = policy
		}
	}
	return owned
}

// IsOwnQueue reports whether a queue, and not only its name, is one that the pipeline makes besides those of its
// specification: a retry queue out of the schedule, or what was refused under another engine.
func (n Names) IsOwnQueue(name string, queue topology.Queue) bool {
	return n.IsRetryQueue(name, queue) ||
		name == n.RefusedQueue() && queue.Arguments["x-dead-letter-exchange"] == n.FailedExchange()
}

// IsInbox reports whether a queue, and not only its name, is the inbox of a pipeline of this name.
func (n Names) IsInbox(name string, queue topology.Queue) bool {
	return name == n.Inbox() && queue.Arguments["x-dead-letter-exchange"] == n.FailedExchange()
}

// IsRetryQueue reports whether a queue is one of the pipeline's retry queues, in or out of the schedule.
func (n Names) IsRetryQueue(name string, queue topology.Queue) bool {
	_, named := n.DelayOf(name)
	return named && queue.Arguments["x-dead-letter-exchange"] == n.ReturnExchange()
}

// OwnsBinding reports whether a binding is the pipeline's: between two of its objects, or one that
// brings messages back to a work queue, or parks those of one. A key that means either is the pipeline's own, so that
// one that leads to the wrong queue is seen; only attachments, which mark theirs, use it too. Notes are the
// pipeline's as well, so that a plan shows them.
func (n Names) OwnsBinding(b topology.Binding) bool {
	if _, isNote := n.Notes().Noted(b); isNote {
		return true
	}
	if !n.OwnsExchange(b.Source) || b.ToExchange {
		return false
	}
	_, ofAttachment := b.Arguments[AttachmentArgument]
	returns := b.Source == n.ReturnExchange() && strings.HasPrefix(b.RoutingKey, ReturnKeyPrefix)
	parks := b.Source == n.FailedRouteExchange() && strings.HasPrefix(b.RoutingKey, FailedKeyPrefix)
	return (returns || parks) && !ofAttachment || n.OwnsQueue(b.Destination)
}

// ReturnBinding brings messages back to a work queue.
func (n Names) ReturnBinding(workQueue string) topology.Binding {
	return topology.Binding{Source: n.ReturnExchange(), Destination: workQueue, RoutingKey: ReturnKey(workQueue)}
}

// DeclaredBinding brings messages back to a work queue that the pipeline declares. It has no mark where the name has a
// ~: RabbitMQ's management API fails over such a key next to arguments. An import takes such a queue for released.
func (n Names) DeclaredBinding(workQueue string) topology.Binding {
	if CannotBeMarked(workQueue) {
		return n.ReturnBinding(workQueue)
	}
	return marked(n.ReturnBinding(workQueue), DeclaredArgument, string(n))
}

// AttachedBy is the pipeline that has the queue to which a binding leads because of that binding, "" if none, or if it has
// let go of the queue.
func AttachedBy(b topology.Binding) string {
	n, returns := ReturnedBy(b)
	if !returns || b.Equal(n.detachedBinding(b.Destination)) {
		return ""
	}
	return string(n)
}

// ReturnsFrom lists the queues whose messages come back by a return binding, none for any other binding.
func ReturnsFrom(b topology.Binding, vhost topology.Topology) []string {
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

// ReturnedBy is the pipeline whose messages return to a queue by a binding, whether it has the queue still or has let go
// of it; false if it is no such binding.
func ReturnedBy(b topology.Binding) (Names, bool) {
	name, returns := strings.CutSuffix(b.Source, Names("").ReturnExchange())
	return Names(name), returns && !b.ToExchange && b.RoutingKey == ReturnKey(b.Destination)
}

// Returns reports whether a binding is one that the pipeline itself makes to bring messages back to a work queue,
// declared or not, taken over or not.
func (n Names) Returns(b topology.Binding) bool {
	_, plain := takenOverFrom(b)
	return plain.Equal(n.ReturnBinding(b.Destination)) || b.Equal(n.DeclaredBinding(b.Destination))
}
