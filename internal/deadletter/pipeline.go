package deadletter

import (
	"errors"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// maxShortString is the longest name or routing key that AMQP 0-9-1 can carry, in bytes.
const maxShortString = 255

// Pipeline is what has to be known of a retry pipeline to decide about its dead letters.
type Pipeline struct {
	Names pipeline.Names
	Vhost string

	delays      []time.Duration
	maxAttempts int64
	// maxAge is 0 for none.
	maxAge     time.Duration
	retryOn    []string
	workQueues map[string]pipeline.WorkerQueue
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
	}
	if len(p.retryOn) == 0 {
		p.retryOn = []string{pipeline.ReasonRejected}
	}
	for i, spelled := range w.Delays {
		p.delays[i], _ = pipeline.ParseDelay(spelled) // is valid
	}
	if w.MaxAge != "" {
		p.maxAge, _ = pipeline.ParseMaxAge(w.MaxAge)
	}
	return p, nil
}

// maxAttemptsIn is how often a message is delivered that failed in this work queue.
func (p *Pipeline) maxAttemptsIn(queue string) int64 {
	if own := p.workQueues[queue].MaxAttempts; own != 0 {
		return int64(own)
	}
	return p.maxAttempts
}
