package pipeline

import (
	"cmp"
	"fmt"
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

// Facts describe an engine for checks and messages.
type Facts struct {
	// Since is the oldest release that supports the engine, and Before says what older releases do. Flag is the feature flag that
	// the engine needs before RabbitMQ 4.0, which always has it.
	Since  topology.Version
	Before string
	Flag   string
	// InQueue says that messages wait in their work queue, by its policy. Classic queues cannot do that, and an
	// attachment does not know the delays.
	InQueue bool
	// Misfit says why the engine cannot follow a list of delays, and returns "" if it can.
	Misfit func([]time.Duration) (summary, detail string)
	// Call is how consumers must return a message that they cannot process. Otherwise says what happens if they do not.
	Call, Otherwise string
	// Unbound says what happens to messages that have waited if their work queue is not bound.
	Unbound string
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

// Facts returns the facts of the pipeline's engine.
func (p Pipeline) Facts() Facts { return p.engine().facts() }

// EngineByExchanges returns the engine of a pipeline whose definition cannot be read. It looks at the alternate
// exchange of the return exchange, and at the retry exchange if it exists.
func EngineByExchanges(n Names, alternate string, retry topology.Exchange) string {
	switch {
	case alternate != n.FailedExchange():
		return EngineWorker
	case retry.Type == "headers":
		return EngineConsumer
	}
	return EngineNative
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
		t.Queues[n.RetryQueue(wait)] = WaitingQueue(p.QueueType, n.ReturnExchange(), wait)
		t.Bindings = append(t.Bindings, topology.Binding{Source: n.RetryExchange(), Destination: n.RetryQueue(wait), RoutingKey: DelayKey(wait)})
	}
}

func (workerEngine) deadLetterExchange(n Names, _ bool) string { return n.DeadLetterExchange() }

// guardedExchange is the exchange of the work queues, so that one policy covers both.
func (workerEngine) guardedExchange(n Names) string { return n.DeadLetterExchange() }

func (workerEngine) workQueueKeys(Pipeline, string, WorkQueue) topology.Arguments { return nil }

func (workerEngine) facts() Facts {
	return Facts{
		Misfit:    func([]time.Duration) (summary, detail string) { return "", "" },
		Call:      "call basic.nack(requeue=false)",
		Otherwise: "With requeue=true, a message comes back at once, without a delay. The guide \"Choosing an engine\" says what each call does.",
		Unbound: "After each delay, its messages go to the sidecar again. " +
			"The sidecar publishes them to the queue by name. Without the permission for that, it parks them.",
	}
}

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
	n := p.Names()
	for _, wait := range append(p.Waits(), p.Retired...) {
		t.Queues[n.RetryQueue(wait)] = WaitingQueue(p.QueueType, n.ReturnExchange(), wait)
	}
	for _, wait := range p.Waits() {
		t.Bindings = append(t.Bindings, n.RejectedBinding(wait))
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

func (consumerEngine) facts() Facts {
	return Facts{
		Since: topology.Version{Major: 3, Minor: 13},
		Before: "Before 3.13, a headers exchange does not see why a message died (x-last-death-reason), so no rejected message " +
			"would be retried.",
		Flag:      "message_containers",
		Misfit:    notOne,
		Call:      "count, and call basic.nack(requeue=false)",
		Otherwise: "Without the code in the guide \"Choosing an engine\", a message that always fails comes back indefinitely.",
		Unbound:   "After the delay, its messages are parked.",
	}
}

func notOne(waits []time.Duration) (summary, detail string) {
	if len(waits) == 1 {
		return "", ""
	}
	return "More than one delay without a sidecar", fmt.Sprintf("With engine = %q, all retries wait in one queue, and %d delays are listed. "+
		"List one delay, or write engine = %q.", EngineConsumer, len(waits), EngineWorker)
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

func (nativeEngine) facts() Facts {
	return Facts{
		Since: topology.Version{Major: 4, Minor: 3, Patch: 1},
		Before: "Quorum queues delay by a policy from 4.3.1 on. " +
			"An older broker refuses the policy, or has the queue return messages at once, thousands of times a second.",
		InQueue:   true,
		Misfit:    notLinear,
		Call:      "call basic.reject(requeue=true)",
		Otherwise: "With requeue=false, a message is parked at its first failure. The guide \"Choosing an engine\" says what each call does.",
		Unbound:   "Replayed messages are parked again.",
	}
}

func notLinear(waits []time.Duration) (summary, detail string) {
	if len(waits) == 0 || isLinear(waits) {
		return "", ""
	}
	return "Schedule that RabbitMQ cannot delay by itself", fmt.Sprintf("With engine = %q, RabbitMQ computes the delays: "+
		"the first delay once, twice, three times and so on, up to the last delay. "+
		"Write such a schedule, as in delays = [\"5s\", \"10s\", \"15s\"], or engine = %q.", EngineNative, EngineWorker)
}

// isLinear reports whether the broker can compute these delays itself: d, 2d, 3d and so on, up to the last one.
func isLinear(waits []time.Duration) bool {
	least, most := waits[0], waits[len(waits)-1]
	next := min(least, most)
	for _, wait := range waits {
		if wait != next {
			return false
		}
		next = min(next+least, most)
	}
	return true
}
