package pipeline

import (
	"cmp"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Engines: who counts the attempts, and where messages wait.
const (
	// EngineWorker counts by the sidecar, and works on every release.
	EngineWorker = "worker"
	// EngineNative lets quorum queues count and delay what is returned to them.
	EngineNative = "native"
	// EngineConsumer lets consumers count what the broker notes.
	EngineConsumer = "consumer"
)

// Engines lists all engines, the default one first.
func Engines() []string { return []string{EngineWorker, EngineNative, EngineConsumer} }

// engine is a way to retry messages: what a pipeline takes besides the failed exchanges, the failed queue and the
// bindings by which messages return, which all of them have.
type engine interface {
	// exchanges are those of the pipeline, but for the failed ones. They depend on nothing but its name.
	exchanges(Names) map[string]topology.Exchange
	// addQueues adds the own queues, but for the failed queue, and what leads to them.
	addQueues(*topology.Topology, Pipeline)
	// deadLetterExchange is where work queues dead-letter to, those with or those without a failed queue of their own.
	deadLetterExchange(n Names, ownFailedQueue bool) string
	// guardedExchange is what the policy over the own queues says so that it says something: their own arguments
	// take precedence over it.
	guardedExchange(Names) string
	// workQueueKeys are those of a work queue's policy that only this engine needs. The name is empty for what all
	// work queues have in common.
	workQueueKeys(p Pipeline, name string, w WorkQueue) topology.Arguments
}

var engines = map[string]engine{
	"": workerEngine{}, EngineWorker: workerEngine{}, EngineNative: nativeEngine{}, EngineConsumer: consumerEngine{},
}

// engine is that of the worker for one that nobody knows, which is refused elsewhere.
func (p Pipeline) engine() engine {
	if e, known := engines[p.Engine]; known {
		return e
	}
	return workerEngine{}
}

// HasWorker reports whether a worker counts the pipeline's attempts: only then it has an inbox, and a
// configuration and permissions of a worker.
func (p Pipeline) HasWorker() bool { return p.engine() == workerEngine{} }

// EngineName is the engine, written out.
func (p Pipeline) EngineName() string {
	return cmp.Or(p.Engine, EngineWorker)
}

// DeadLetterExchange is where the pipeline's work queues dead-letter to, unless they have a failed queue of their own.
func (p Pipeline) DeadLetterExchange() string {
	return p.engine().deadLetterExchange(p.Names(), false)
}

// DeadLetterExchangeOf is where a work queue of the pipeline dead-letters to.
func (p Pipeline) DeadLetterExchangeOf(w WorkQueue) string {
	return p.engine().deadLetterExchange(p.Names(), w.FailedQueue != "")
}

// DeadLettersTo reports whether a work queue of the pipeline may dead-letter to the exchange.
func (p Pipeline) DeadLettersTo(exchange string) bool {
	return exchange == p.DeadLetterExchange() || exchange == p.engine().deadLetterExchange(p.Names(), true)
}

// workerEngine retries by a worker, which counts attempts, and by retry queues whose messages expire.
type workerEngine struct{}

func (workerEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		n.DeadLetterExchange(): {Type: "fanout", Arguments: Alternate(n.FailedExchange())},
		// No alternate exchange: only the worker publishes here, mandatory, and must hear of a delay
		// that is not bound.
		n.RetryExchange(): {Type: "direct"},
		// A message whose work queue lost its binding goes back to the worker, which saves it.
		n.ReturnExchange(): {Type: "direct", Arguments: Alternate(n.DeadLetterExchange())},
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

// consumerEngine leaves counting to consumers, who read what the broker notes of a message's deaths. What they reject
// waits in the one retry queue, and returns to the queue that rejected it; whatever else dies is parked.
type consumerEngine struct{}

func (consumerEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		n.RetryExchange(): {Type: "headers", Arguments: Alternate(n.FailedExchange())},
		// What comes back to a work queue that is gone is parked. An at-least-once retry queue would keep it, and
		// everything after it.
		n.ReturnExchange(): {Type: "direct", Arguments: Alternate(n.FailedExchange())},
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

// nativeEngine leaves counting and delaying to the work queues themselves, by their policy: what is returned to one
// waits in it, and is dead-lettered to the failed exchange after the last attempt.
type nativeEngine struct{}

// delayedRetryType delays whatever is returned to the queue. With any other type, either what is returned
// (basic.nack with requeue) or what failed (basic.reject with requeue) comes back at once, again and again.
const delayedRetryType = "all"

func (nativeEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		// Replays are published here. One whose work queue lost its binding is parked again.
		n.ReturnExchange(): {Type: "direct", Arguments: Alternate(n.FailedExchange())},
	}
}

func (nativeEngine) addQueues(*topology.Topology, Pipeline) {}

// deadLetterExchange is where messages are parked. The key to a failed queue of a work queue's own is in its policy.
func (nativeEngine) deadLetterExchange(n Names, ownFailedQueue bool) string {
	if ownFailedQueue {
		return n.FailedRouteExchange()
	}
	return n.FailedExchange()
}

func (nativeEngine) guardedExchange(n Names) string { return n.FailedExchange() }

// workQueueKeys delay and count. A delivery limit of n lets a message be delivered n+1 times.
func (nativeEngine) workQueueKeys(p Pipeline, name string, w WorkQueue) topology.Arguments {
	if len(p.Delays) == 0 {
		return nil
	}
	keys := topology.Arguments{
		"delayed-retry-type": delayedRetryType,
		"delayed-retry-min":  p.Delays[0].Wait.Milliseconds(),
		"delayed-retry-max":  p.Delays[len(p.Delays)-1].Wait.Milliseconds(),
		"delivery-limit":     int64(p.MaxAttempts - 1),
	}
	if w.FailedQueue != "" {
		keys["dead-letter-routing-key"] = FailedKey(name)
	}
	return keys
}

// LinearDelay is what the broker makes of the n-th delay, counted from 1, of a queue that delays from least to most.
func LinearDelay(n int, least, most time.Duration) time.Duration {
	if least > 0 && time.Duration(n) > most/least {
		return most
	}
	return min(time.Duration(n)*least, most)
}

// IsLinear reports whether a broker can delay like this by itself: d, 2d, 3d and so on, up to the last one.
func IsLinear(waits []time.Duration) bool {
	for i, wait := range waits {
		if wait != LinearDelay(i+1, waits[0], waits[len(waits)-1]) {
			return false
		}
	}
	return true
}
