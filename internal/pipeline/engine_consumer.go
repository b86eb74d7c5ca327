package pipeline

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// consumerEngine leaves counting to consumers, who read what the broker notes of a message's deaths. What they reject
// waits in the one retry queue, and returns to the queue that rejected it; whatever else dies is parked.
type consumerEngine struct{}

func (consumerEngine) hasWorker() bool { return false }

func (consumerEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		n.FailedExchange():      failedExchange(),
		n.FailedRouteExchange(): failedRouteExchange(n),
		n.RetryExchange():       {Type: "headers", Arguments: alternate(n.FailedExchange())},
		// What comes back to a work queue that is gone is parked. An at-least-once retry queue would keep it, and
		// everything after it.
		n.ReturnExchange(): {Type: "direct", Arguments: alternate(n.FailedExchange())},
	}
}

// addQueues binds the queue of the delay, but none of those that left the schedule: a message would wait in both.
func (consumerEngine) addQueues(t *topology.Topology, p Pipeline) {
	for _, wait := range append(p.Waits(), p.Retired...) {
		addRetryQueue(t, p, wait)
	}
	for _, wait := range p.Waits() {
		t.Bindings = append(t.Bindings, p.Names().RejectedBinding(wait))
	}
}

// RejectedBinding lets rejected messages into a retry queue, and nothing else: what expires or is displaced would come
// back to its queue without a rejection. Brokers drop such a message as a cycle, and an at-least-once queue keeps it in
// front of all others.
func (n Names) RejectedBinding(wait time.Duration) topology.Binding {
	return topology.Binding{
		Source: n.RetryExchange(), Destination: n.RetryQueue(wait),
		Arguments: topology.Arguments{"x-match": "all-with-x", "x-last-death-reason": ReasonRejected},
	}
}

func (consumerEngine) deadLetterExchange(n Names, _ bool) string { return n.RetryExchange() }

func (consumerEngine) guardedExchange(n Names) string { return n.FailedExchange() }

// workQueueKeys give a dead letter the key with which it returns to its queue from the retry queue.
func (consumerEngine) workQueueKeys(_ Pipeline, name string, _ WorkQueue) topology.Arguments {
	if name == "" {
		return nil
	}
	return topology.Arguments{"dead-letter-routing-key": ReturnKey(name)}
}
