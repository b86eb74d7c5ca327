// Package deadletter decides what becomes of a message that a pipeline's inbox holds.
//
// It is pure: a delivery goes in, a verdict and the message to publish come out. The exchange that a
// delivery came through is the broker's word. The newest entry of x-death is, too, unless the message
// was published to the dead-letter exchange by a client, which can copy or forge any header; hence no
// header may send a message round indefinitely. Clock, ids and limits are passed in.
package deadletter

import (
	"errors"
	"maps"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// maxShortString is the longest name or routing key that AMQP 0-9-1 can carry, in bytes.
const maxShortString = 255

// Pipeline is what has to be known of a retry pipeline to decide about its dead letters.
type Pipeline struct {
	Names pipeline.Names
	Vhost string

	delays []time.Duration
	// counted are those that make up a longer wait.
	counted     []time.Duration
	maxAttempts int64
	// maxAge is 0 for none.
	maxAge     time.Duration
	retryOn    []string
	workQueues map[string]pipeline.WorkerQueue
	queues     []pipeline.Queue
}

// NewPipeline compiles one element of the worker's configuration. The error is that of one which is not
// valid, and begins with the path of what is wrong.
func NewPipeline(w pipeline.Worker) (*Pipeline, error) {
	if problems := workerconfig.Validate(w); len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	p := &Pipeline{
		Names:       pipeline.Names(w.Name),
		Vhost:       w.Vhost,
		delays:      make([]time.Duration, len(w.Delays)),
		maxAttempts: int64(w.MaxAttempts),
		retryOn:     w.RetryOn,
		workQueues:  w.WorkQueues,
		queues:      w.Queues(),
	}
	if len(p.retryOn) == 0 {
		p.retryOn = []string{pipeline.ReasonRejected}
	}
	for i, spelled := range w.Delays {
		p.delays[i], _ = pipeline.ParseDelay(spelled) // is valid
	}
	p.counted = counted(p.delays)
	if w.MaxAge != "" {
		p.maxAge, _ = pipeline.ParseMaxAge(w.MaxAge)
	}
	return p, nil
}

// ID tells it from others.
func (p *Pipeline) ID() workerconfig.ID {
	return workerconfig.ID{Kind: rules.Pipeline, Name: string(p.Names), Vhost: p.Vhost}
}

// Inbox is the queue with its dead letters.
func (p *Pipeline) Inbox() string { return p.Names.Inbox() }

// Queues are those in which its messages wait or end.
func (p *Pipeline) Queues() []pipeline.Queue { return p.queues }

// WorkQueues lists the work queues of the configuration.
func (p *Pipeline) WorkQueues() []string { return slices.Sorted(maps.Keys(p.workQueues)) }

// Exchanges are those of its own that messages are published to.
func (p *Pipeline) Exchanges() []string { return p.Names.WorkerExchanges() }

// Last is where the broker puts what the worker cannot publish.
func (p *Pipeline) Last() (exchange, queue string) {
	return p.Names.FailedExchange(), p.Names.FailedQueue()
}

// PublishIDHeader is [HeaderPublishID].
func (p *Pipeline) PublishIDHeader() string { return HeaderPublishID }

// maxAttemptsIn is how often a message is delivered that failed in this work queue.
func (p *Pipeline) maxAttemptsIn(queue string) int64 {
	if own := p.workQueues[queue].MaxAttempts; own != 0 {
		return int64(own)
	}
	return p.maxAttempts
}

// Delays are those that a retried message can wait.
func (p *Pipeline) Delays() []time.Duration {
	delays := slices.Clone(p.delays)
	slices.Sort(delays)
	return slices.Compact(delays)
}

// FailReasons are all that can stand in the dead-letter-reason of a failed message.
func FailReasons() []string {
	reasons := []string{
		ReasonExhausted, ReasonUnrecoverable, ReasonUnknownQueue, ReasonMalformed, ReasonTooOld, ReasonRetryAfterTooLong, ReasonWorkerError,
	}
	for _, reason := range pipeline.Reasons() {
		if reason != pipeline.ReasonRejected { // always retried
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// DiedAt is when the broker dead-lettered the message last, in whole seconds of its clock; zero if
// nobody knows. Whoever may publish to the dead-letter exchange can write what they like there.
func DiedAt(h amqp.Table) time.Time {
	deaths, _ := h[headerDeath].([]any)
	if len(deaths) == 0 {
		return time.Time{}
	}
	last, _ := deaths[0].(amqp.Table)
	at, _ := last["time"].(time.Time)
	return at
}
