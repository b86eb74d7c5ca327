package pipeline

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// RestoresDeadLetterRoute reports whether dead letters may be pending because they had no way to go, and have one again
// once what is missing of the pipeline is restored, or an exchange is re-created.
func RestoresDeadLetterRoute(p Pipeline, live topology.Topology) bool {
	n, changes := p.Names(), topology.Diff(Expand(p), live)
	missing := changes.Create
	_, noInbox := missing.Queues[n.Inbox()]
	_, noFailed := missing.Queues[n.FailedQueue()]
	// What the worker publishes to the retry exchange never becomes a pending dead letter.
	isRoute := func(b topology.Binding) bool { return b.Source != n.RetryExchange() }
	return noInbox || noFailed || len(missing.Exchanges)+len(changes.Replace.Exchanges) > 0 || slices.ContainsFunc(missing.Bindings, isRoute)
}
