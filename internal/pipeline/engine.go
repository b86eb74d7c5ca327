package pipeline

import (
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

// engine is a way to retry messages: what a pipeline takes besides the failed exchange, the failed queue and the
// bindings by which messages return, which all of them have.
type engine interface {
	// exchanges are those of the pipeline. They depend on nothing but its name.
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
	// hasWorker reports whether a worker counts attempts. If not, there is no inbox, nor a configuration or
	// permissions of a worker.
	hasWorker() bool
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
func (p Pipeline) HasWorker() bool { return p.engine().hasWorker() }

// EngineName is the engine, written out.
func (p Pipeline) EngineName() string {
	if p.Engine == "" {
		return EngineWorker
	}
	return p.Engine
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
