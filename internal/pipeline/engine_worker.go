package pipeline

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// workerEngine retries by a worker, which counts attempts, and by retry queues whose messages expire.
type workerEngine struct{}

func (workerEngine) hasWorker() bool { return true }

func (workerEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		n.DeadLetterExchange():  {Type: "fanout", Arguments: alternate(n.FailedExchange())},
		n.FailedExchange():      failedExchange(),
		n.FailedRouteExchange(): failedRouteExchange(n),
		// No alternate exchange: only the worker publishes here, mandatory, and must hear of a delay
		// that is not bound.
		n.RetryExchange(): {Type: "direct"},
		// A message whose work queue lost its binding goes back to the worker, which saves it.
		n.ReturnExchange(): {Type: "direct", Arguments: alternate(n.DeadLetterExchange())},
	}
}

func (workerEngine) addQueues(t *topology.Topology, p Pipeline) {
	n := p.Names()
	t.Queues[n.Inbox()] = OwnQueue(p.QueueType, n.FailedExchange(), InboxDeliveryLimit, nil)
	t.Bindings = append(t.Bindings, topology.Binding{Source: n.DeadLetterExchange(), Destination: n.Inbox()})
	t.Queues[n.RefusedQueue()] = RefusedQueue(n.FailedExchange())
	t.Bindings = append(t.Bindings, topology.Binding{Source: n.RetryExchange(), Destination: n.RefusedQueue(), RoutingKey: RefusedKey})
	for _, wait := range append(p.Waits(), p.Retired...) {
		addRetryQueue(t, p, wait)
		t.Bindings = append(t.Bindings, topology.Binding{Source: n.RetryExchange(), Destination: n.RetryQueue(wait), RoutingKey: DelayKey(wait)})
	}
}

func (workerEngine) deadLetterExchange(n Names, _ bool) string { return n.DeadLetterExchange() }

// guardedExchange is that of the work queues, so that one policy can cover both.
func (workerEngine) guardedExchange(n Names) string { return n.DeadLetterExchange() }

func (workerEngine) workQueueKeys(Pipeline, string, WorkQueue) topology.Arguments { return nil }
