package topology

import "strings"

// Owned picks out of a whole vhost what belongs to the pipeline. Objects of others are left out
// even where they meet the pipeline's: a foreign queue bound to the dead-letter exchange is not ours.
//
// Retry queues of any delay count, so that those that left the schedule are found again; if the
// specification does not know a delay, the queue must dead-letter to the pipeline's return exchange.
func Owned(p Pipeline, vhost Topology) Topology {
	n, owned := p.Names(), newTopology()
	for name, exchange := range vhost.Exchanges {
		if n.ownsExchange(name) {
			owned.Exchanges[name] = exchange
		}
	}
	known := Expand(p).Queues
	for name, queue := range vhost.Queues {
		if _, isKnown := known[name]; isKnown || n.isRetryQueue(name, queue) {
			owned.Queues[name] = queue
		}
	}
	for _, binding := range vhost.Bindings {
		if n.ownsBinding(binding) {
			owned.Bindings = append(owned.Bindings, binding)
		}
	}
	sortBindings(owned.Bindings)
	for name, policy := range vhost.Policies {
		if n.ownsPolicy(name) {
			owned.Policies[name] = policy
		}
	}
	return owned
}

func (n Names) isRetryQueue(name string, queue Queue) bool {
	_, named := n.DelayOf(name)
	return named && queue.Arguments["x-dead-letter-exchange"] == n.ReturnExchange()
}

// ownsBinding tells whether a binding is the pipeline's: between two of its objects, or one that
// brings messages back to a work queue. A key that means such a return is the pipeline's own, so that
// one that leads to the wrong queue is seen; only attachments, which mark theirs, use it too.
func (n Names) ownsBinding(b Binding) bool {
	if !n.ownsExchange(b.Source) || b.ToExchange {
		return false
	}
	_, ofAttachment := b.Arguments[AttachmentArgument]
	returns := b.Source == n.ReturnExchange() && strings.HasPrefix(b.RoutingKey, ReturnKeyPrefix) && !ofAttachment
	return returns || n.OwnsQueue(b.Destination)
}

// returnBinding brings messages back to a work queue.
func (n Names) returnBinding(workQueue string) Binding {
	return Binding{Source: n.ReturnExchange(), Destination: workQueue, RoutingKey: ReturnKey(workQueue)}
}
