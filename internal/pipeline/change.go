package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// WithoutReleasedQueues returns the live objects without the work queues that the change from prior to next
// releases instead of deleting: those that are still attached, be it by an attachment, but no longer declared,
// and those that somebody else re-created, which do not carry the pipeline's mark. Next is nil for a destroy.
func WithoutReleasedQueues(live topology.Topology, prior Pipeline, next *Pipeline, vhost topology.Topology) topology.Topology {
	kept := live
	kept.Queues = maps.Clone(live.Queues)
	byAttachment := Attached(prior.Names(), vhost)
	for name, before := range prior.WorkQueues {
		if !before.Declare {
			continue
		}
		attached, declared := false, false
		if next != nil {
			after, stays := next.WorkQueues[name]
			attached, declared = stays, after.Declare
		}
		_, joined := slices.BinarySearch(byAttachment, name)
		attached = attached || joined
		foreign := !prior.Names().Declared(kept.Queues[name])
		if !declared && (attached || foreign) {
			delete(kept.Queues, name)
		}
	}
	for _, name := range releasedFailedQueues(prior, next, vhost) {
		delete(kept.Queues, name)
	}
	return kept
}

// BindingsThatGo lists the bindings of others that are deleted with the pipeline, since they begin or end at one of its
// exchanges, or end at one of its queues. Those of attachments do not count: a pipeline that has any is not destroyed.
func BindingsThatGo(p Pipeline, vhost topology.Topology) []topology.Binding {
	n, going := p.Names(), WithoutReleasedQueues(Owned(p, vhost), p, nil, vhost)
	going = topology.Merge(going, topology.Topology{Exchanges: Expand(p).Exchanges}) // one that is missing has notes
	var found []topology.Binding
	for _, b := range vhost.Bindings {
		if noted, isNote := n.Noted(b); isNote {
			b = noted
		}
		_, fromOwn := going.Exchanges[b.Source]
		_, toOwn := going.Queues[b.Destination]
		if b.ToExchange {
			_, toOwn = going.Exchanges[b.Destination]
		}
		_, ofAttachment := b.Arguments[AttachmentArgument]
		if b.Source != "" && (fromOwn || toOwn) && !n.OwnsBinding(b) && !ofAttachment {
			found = append(found, b)
		}
	}
	topology.SortBindings(found)
	return slices.CompactFunc(found, topology.Binding.Equal)
}

// RestoresDeadLetterRoute reports whether dead letters may be pending because they had no way to go, and have one again
// once what is missing of the pipeline is restored, or an exchange is re-created.
func RestoresDeadLetterRoute(p Pipeline, live topology.Topology) bool {
	n, changes := p.Names(), topology.Diff(Expand(p), live)
	missing := changes.Create
	_, noInbox := missing.Queues[n.Inbox()]
	_, noFailed := missing.Queues[n.FailedQueue()]
	// What the worker publishes to the retry exchange never becomes a pending dead letter.
	isRoute := func(b topology.Binding) bool {
		return !p.HasWorker() || b.Source != n.RetryExchange() && b.Source != n.FailedRouteExchange()
	}
	return noInbox || noFailed || len(missing.Exchanges)+len(changes.Replace.Exchanges) > 0 || slices.ContainsFunc(missing.Bindings, isRoute)
}
