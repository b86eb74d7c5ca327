package pipeline

import (
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Owned returns the pipeline's objects in a whole vhost. It leaves out foreign objects that touch the pipeline, such as
// a foreign queue on the dead-letter exchange or an exchange of another engine. It includes retry queues of every
// delay, so that queues that left the schedule are found. If the specification does not have a delay, its queue must
// dead-letter to the pipeline's return exchange.
func (p Pipeline) Owned(vhost topology.Topology) topology.Topology {
	n, owned, known := p.Names(), topology.New(), p.Expand()
	for name, exchange := range vhost.Exchanges {
		if _, isKnown := known.Exchanges[name]; isKnown {
			owned.Exchanges[name] = exchange
		}
	}
	for name, queue := range vhost.Queues {
		if _, isKnown := known.Queues[name]; isKnown || n.IsOwnQueue(name, queue) {
			owned.Queues[name] = queue
		}
	}
	for _, binding := range vhost.Bindings {
		if _, isKnown := known.Exchanges[binding.Source]; isKnown && n.OwnsBinding(binding) {
			owned.Bindings = append(owned.Bindings, binding)
		}
	}
	topology.SortByText(owned.Bindings)
	for name, policy := range vhost.Policies {
		if n.ownsPolicy(name) {
			owned.Policies[name] = policy
		}
	}
	return owned
}

// IsOwnQueue reports whether the pipeline made a queue outside its specification. That is a retry queue that left the
// schedule, or a refused queue of another engine. It looks at the queue's arguments as well as its name.
func (n Names) IsOwnQueue(name string, queue topology.Queue) bool {
	return n.IsRetryQueue(name, queue) ||
		name == n.RefusedQueue() && queue.Arguments["x-dead-letter-exchange"] == n.FailedExchange()
}

// IsInbox reports whether a queue is the pipeline's inbox, by its name and arguments.
func (n Names) IsInbox(name string, queue topology.Queue) bool {
	return name == n.Inbox() && queue.Arguments["x-dead-letter-exchange"] == n.FailedExchange()
}

// IsRetryQueue reports whether a queue is one of the pipeline's retry queues, in or out of the schedule.
func (n Names) IsRetryQueue(name string, queue topology.Queue) bool {
	_, named := n.DelayOf(name)
	return named && queue.Arguments["x-dead-letter-exchange"] == n.ReturnExchange()
}

// OwnsBinding reports whether the pipeline owns a binding. It owns bindings between its objects, bindings that return
// or park messages of a work queue, and notes. A binding with such a key counts even if it leads to the wrong queue, so
// that a plan shows it. Attachments use the same keys but mark their bindings.
func (n Names) OwnsBinding(b topology.Binding) bool {
	if _, isNote := n.Notes().Noted(b); isNote {
		return true
	}
	if !n.OwnsExchange(b.Source) || b.ToExchange {
		return false
	}
	_, ofAttachment := b.Arguments[AttachmentArgument]
	returns := b.Source == n.ReturnExchange() && strings.HasPrefix(b.RoutingKey, ReturnKeyPrefix)
	return (returns || n.Parks(b)) && !ofAttachment || n.OwnsQueue(b.Destination)
}

// ReturnBinding returns the binding that brings messages back to a work queue.
func (n Names) ReturnBinding(workQueue string) topology.Binding {
	return topology.Binding{Source: n.ReturnExchange(), Destination: workQueue, RoutingKey: ReturnKey(workQueue)}
}

// DeclaredBinding returns the binding that brings messages back to a declared work queue. If the name contains a ~, the
// binding has no mark, because RabbitMQ's management API fails on such a key with arguments. An import then treats the
// queue as released.
func (n Names) DeclaredBinding(workQueue string) topology.Binding {
	if CannotBeMarked(workQueue) {
		return n.ReturnBinding(workQueue)
	}
	return marked(n.ReturnBinding(workQueue), DeclaredArgument, string(n))
}

// AttachedBy returns the pipeline that has the destination as a work queue because of this binding. If the binding is
// another kind or its queue is detached, it returns "".
func AttachedBy(b topology.Binding) string {
	n, returns := ReturnedBy(b)
	if !returns || b.Equal(n.detachedBinding(b.Destination)) {
		return ""
	}
	return string(n)
}

// ReturnedBy returns the pipeline whose messages return to a queue by this binding, even if the queue is detached. It
// returns false for other bindings.
func ReturnedBy(b topology.Binding) (Names, bool) {
	name, returns := strings.CutSuffix(b.Source, Names("").ReturnExchange())
	return Names(name), returns && !b.ToExchange && b.RoutingKey == ReturnKey(b.Destination)
}

// Returns reports whether the pipeline itself made the binding to bring messages back to a work queue. The queue can be
// declared or taken over.
func (n Names) Returns(b topology.Binding) bool {
	_, plain := takenOverFrom(b)
	return plain.Equal(n.ReturnBinding(b.Destination)) || b.Equal(n.DeclaredBinding(b.Destination))
}
