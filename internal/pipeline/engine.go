package pipeline

import (
	"cmp"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Engines differ in who counts attempts and where messages wait.
const (
	// EngineWorker counts attempts in the sidecar, and works on every RabbitMQ release.
	EngineWorker = "worker"
	// EngineNative makes quorum queues count and delay returned messages themselves.
	EngineNative = "native"
	// EngineConsumer makes consumers count attempts from the headers that the broker adds.
	EngineConsumer = "consumer"
)

// Engines lists all engines, starting with the default.
func Engines() []string { return []string{EngineWorker, EngineNative, EngineConsumer} }

// engine is a way to retry messages. It describes the objects that differ between engines. Failed exchanges, the failed
// queue and return bindings are the same for all.
type engine interface {
	// exchanges returns the pipeline's exchanges except the failed ones. They depend only on its name.
	exchanges(Names) map[string]topology.Exchange
	// addQueues adds the pipeline's own queues except the failed queue, with their bindings.
	addQueues(*topology.Topology, Pipeline)
	// deadLetterExchange is the target of work queues, either with or without their own failed queue.
	deadLetterExchange(n Names, ownFailedQueue bool) string
	// guardedExchange is the dead-letter exchange in the policy over the own queues. The policy needs some content, and
	// the arguments of these queues take precedence over it.
	guardedExchange(Names) string
	// workQueueKeys returns the policy keys that only this engine needs. If name is empty, it returns the keys that all
	// work queues share.
	workQueueKeys(p Pipeline, name string, w WorkQueue) topology.Arguments
	// facts returns what checks and texts must know of the engine.
	facts() Facts
}

var engines = map[string]engine{
	"": workerEngine{}, EngineWorker: workerEngine{}, EngineNative: nativeEngine{}, EngineConsumer: consumerEngine{},
}

// engine falls back to the worker for an unknown name, which validation refuses.
func (p Pipeline) engine() engine {
	if e, known := engines[p.Engine]; known {
		return e
	}
	return workerEngine{}
}

// HasWorker reports whether a worker counts the pipeline's attempts. Only then the pipeline has an inbox, a worker
// configuration and worker permissions.
func (p Pipeline) HasWorker() bool { return p.engine() == workerEngine{} }

// EngineName returns the engine's name, also if the default is left out.
func (p Pipeline) EngineName() string {
	return cmp.Or(p.Engine, EngineWorker)
}

// DeadLetterExchange is the dead-letter exchange of work queues without their own failed queue.
func (p Pipeline) DeadLetterExchange() string {
	return p.engine().deadLetterExchange(p.Names(), false)
}

// DeadLetterExchangeOf is the dead-letter exchange of a work queue.
func (p Pipeline) DeadLetterExchangeOf(w WorkQueue) string {
	return p.engine().deadLetterExchange(p.Names(), w.FailedQueue != "")
}

// DeadLettersTo reports whether a work queue of the pipeline can dead-letter to the exchange.
func (p Pipeline) DeadLettersTo(exchange string) bool {
	return exchange == p.DeadLetterExchange() || exchange == p.engine().deadLetterExchange(p.Names(), true)
}

// workerEngine counts attempts in a worker, and delays messages in retry queues where they expire.
type workerEngine struct{}

func (workerEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		n.DeadLetterExchange(): {Type: "fanout", Arguments: Alternate(n.FailedExchange())},
		// The worker alone publishes here, with the mandatory flag. Without an alternate exchange the broker reports a
		// delay that is not bound.
		n.RetryExchange(): {Type: "direct"},
		// If a work queue lost its binding, its messages go back to the worker, which saves them.
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

// guardedExchange is the exchange of the work queues, so that one policy covers both.
func (workerEngine) guardedExchange(n Names) string { return n.DeadLetterExchange() }

func (workerEngine) workQueueKeys(Pipeline, string, WorkQueue) topology.Arguments { return nil }

// consumerEngine leaves counting to consumers, who read a message's deaths from its headers. A rejected message waits
// in the only retry queue and returns to its work queue. Other dead letters are parked.
type consumerEngine struct{}

func (consumerEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		n.RetryExchange(): {Type: "headers", Arguments: Alternate(n.FailedExchange())},
		// If a work queue is gone, its messages are parked. Otherwise an at-least-once retry queue would keep them and
		// block all later ones.
		n.ReturnExchange(): {Type: "direct", Arguments: Alternate(n.FailedExchange())},
	}
}

// addQueues binds only the retry queue of the current delay. A message would wait in every bound retry queue.
func (consumerEngine) addQueues(t *topology.Topology, p Pipeline) {
	for _, wait := range append(p.Waits(), p.Retired...) {
		addRetryQueue(t, p, wait)
	}
	for _, wait := range p.Waits() {
		t.Bindings = append(t.Bindings, p.Names().RejectedBinding(wait))
	}
}

// RejectedBinding routes only rejected messages into a retry queue. An expired or displaced message would come back to
// its queue without a rejection. Brokers drop such a message as a cycle, and an at-least-once queue keeps it in front
// of all others.
func (n Names) RejectedBinding(wait time.Duration) topology.Binding {
	return topology.Binding{
		Source: n.RetryExchange(), Destination: n.RetryQueue(wait),
		Arguments: topology.Arguments{"x-match": "all-with-x", "x-last-death-reason": ReasonRejected},
	}
}

func (consumerEngine) deadLetterExchange(n Names, _ bool) string { return n.RetryExchange() }

func (consumerEngine) guardedExchange(n Names) string { return n.FailedExchange() }

// workQueueKeys sets the routing key that brings a message from the retry queue back to its work queue.
func (consumerEngine) workQueueKeys(_ Pipeline, name string, _ WorkQueue) topology.Arguments {
	if name == "" {
		return nil
	}
	return topology.Arguments{"dead-letter-routing-key": ReturnKey(name)}
}

// nativeEngine makes work queues count and delay returned messages by their policy. After the last attempt a work queue
// dead-letters the message to the failed exchange.
type nativeEngine struct{}

// delayedRetryType delays every message that is returned to the queue. With any other type, some messages come back at
// once, again and again. These are either returned messages (basic.nack with requeue) or failed ones (basic.reject with
// requeue).
const delayedRetryType = "all"

func (nativeEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		// Replays are published here. If a work queue lost its binding, its replayed messages are parked again.
		n.ReturnExchange(): {Type: "direct", Arguments: Alternate(n.FailedExchange())},
	}
}

func (nativeEngine) addQueues(*topology.Topology, Pipeline) {}

// deadLetterExchange is where messages are parked. For a work queue with its own failed queue, the policy holds the
// routing key.
func (nativeEngine) deadLetterExchange(n Names, ownFailedQueue bool) string {
	if ownFailedQueue {
		return n.FailedRouteExchange()
	}
	return n.FailedExchange()
}

func (nativeEngine) guardedExchange(n Names) string { return n.FailedExchange() }

// workQueueKeys sets the delays and the delivery limit. With a delivery limit of n, a message is delivered n+1 times.
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

// LinearDelay returns the n-th delay, counted from 1, that the broker computes from the least and the most delay.
func LinearDelay(n int, least, most time.Duration) time.Duration {
	if least > 0 && time.Duration(n) > most/least {
		return most
	}
	return min(time.Duration(n)*least, most)
}

// IsLinear reports whether the broker can compute these delays itself: d, 2d, 3d and so on, up to the last one.
func IsLinear(waits []time.Duration) bool {
	for i, wait := range waits {
		if wait != LinearDelay(i+1, waits[0], waits[len(waits)-1]) {
			return false
		}
	}
	return true
}
