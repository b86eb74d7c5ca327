// Package deadletter decides what happens to a message in a pipeline's inbox.
//
// It is pure: a delivery goes in, a verdict and the message to publish come out. The broker vouches for the exchange
// that a delivery came through. It vouches for the newest entry of x-death, too, unless a client published the message
// to the dead-letter exchange. Such a client can copy or forge any header, so no header must send a message round
// indefinitely. Clock, ids and limits are passed in.
package deadletter

import (
	"maps"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Pipeline holds all that decisions about a retry pipeline's dead letters need.
type Pipeline struct {
	// Worker is the pipeline's element of the worker's configuration.
	Worker pipeline.Worker
	Names  pipeline.Names

	delays []time.Duration
	// counted are the delays that a combined wait can use, the longest first.
	counted []time.Duration
	// maxAge is 0 if there is no limit.
	maxAge time.Duration
}

// NewPipeline compiles one element of the worker's configuration, which must be valid.
func NewPipeline(w pipeline.Worker) *Pipeline {
	if len(w.RetryOn) == 0 {
		w.RetryOn = []string{pipeline.ReasonRejected}
	}
	p := &Pipeline{Worker: w, Names: pipeline.Names(w.Name), delays: make([]time.Duration, len(w.Delays))}
	for i, spelled := range w.Delays {
		p.delays[i], _ = pipeline.ParseDelay(spelled) // is valid
	}
	p.counted = slices.DeleteFunc(p.Delays(), func(d time.Duration) bool { return d < shortestCounted })
	slices.Reverse(p.counted)
	if w.MaxAge != "" {
		p.maxAge, _ = pipeline.ParseMaxAge(w.MaxAge)
	}
	return p
}

// ID identifies the pipeline within a configuration.
func (p *Pipeline) ID() workerconfig.ID { return workerconfig.PipelineID(p.Worker) }

// Inbox is the queue with the pipeline's dead letters.
func (p *Pipeline) Inbox() string { return p.Names.Inbox() }

// Queues are the queues where the pipeline's messages wait or end.
func (p *Pipeline) Queues() []pipeline.Queue { return p.Worker.Queues() }

// WorkQueues lists the work queues of the configuration.
func (p *Pipeline) WorkQueues() []string { return slices.Sorted(maps.Keys(p.Worker.WorkQueues)) }

// Exchanges are the pipeline's own exchanges that messages are published to.
func (p *Pipeline) Exchanges() []string { return p.Names.WorkerExchanges() }

// Last is the exchange, and its queue, where the broker puts a message that the worker cannot publish.
func (p *Pipeline) Last() (exchange, queue string) {
	return p.Names.FailedExchange(), p.Names.FailedQueue()
}

// PublishIDHeader is [HeaderPublishID].
func (p *Pipeline) PublishIDHeader() string { return HeaderPublishID }

// maxAttemptsIn is how often a message that failed in this work queue is delivered.
func (p *Pipeline) maxAttemptsIn(queue string) int64 {
	if own := p.Worker.WorkQueues[queue].MaxAttempts; own != 0 {
		return int64(own)
	}
	return int64(p.Worker.MaxAttempts)
}

// Delays are the delays that a retried message can wait for, without duplicates, the shortest first.
func (p *Pipeline) Delays() []time.Duration { return topology.Distinct(slices.Clone(p.delays)) }

// FailReasons lists all values of the dead-letter-reason of a failed message.
func FailReasons() []string {
	brokers := slices.DeleteFunc(pipeline.Reasons(), func(reason string) bool { return reason == pipeline.ReasonRejected }) // always retried
	return append([]string{
		ReasonExhausted, ReasonUnrecoverable, ReasonUnknownQueue, ReasonMalformed, ReasonTooOld, ReasonRetryAfterTooLong, ReasonUnreadable,
		ReasonWorkerError,
	}, brokers...)
}

// DiedAt is when the broker dead-lettered the message last, in whole seconds of its clock. It is zero if the time is
// not known. Clients that publish to the dead-letter exchange can write any time there.
func DiedAt(h amqp.Table) time.Time {
	return newestDeath(h).at
}
