package deadletter

import (
	"fmt"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"maps"
	"slices"
	"strings"
	"time"
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

// FieldError is a value in a pipeline's configuration that cannot work.
type FieldError struct {
	// Field is the JSON path within the pipeline's object, such as "delays[1]".
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// NewPipeline compiles one element of the worker's configuration. An error is a [*FieldError].
func NewPipeline(w pipeline.Worker) (*Pipeline, error) {
	p := &Pipeline{
		Names:       pipeline.Names(w.Name),
		Vhost:       w.Vhost,
		maxAttempts: int64(w.MaxAttempts),
		retryOn:     w.RetryOn,
		workQueues:  w.WorkQueues,
	}
	if len(p.retryOn) == 0 {
		p.retryOn = []string{pipeline.ReasonRejected}
	}
	switch w.Version {
	case pipeline.WorkerVersion:
	case 0:
		return nil, fieldErrorf("version", "is missing: write %d", pipeline.WorkerVersion)
	default:
		return nil, fieldErrorf("version", "%d is not a version that this worker reads: it must be %d", w.Version, pipeline.WorkerVersion)
	}
	if w.Vhost == "" {
		return nil, fieldErrorf("vhost", `is missing: write the virtual host's name, "/" for the default one`)
	}
	if w.MaxAttempts < 1 {
		return nil, fieldErrorf("max_attempts", "%d is too few: the first delivery counts, so it must be at least 1", w.MaxAttempts)
	}
	var err error
	if p.delays, err = parseDelays(w.Delays); err != nil {
		return nil, err
	}
	if p.maxAge, err = parseMaxAge(w.MaxAge); err != nil {
		return nil, err
	}
	for _, check := range []func() error{p.checkName, p.checkRetryOn, p.checkWorkQueues} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func parseDelays(spelled []string) ([]time.Duration, error) {
	if len(spelled) == 0 {
		return nil, fieldErrorf("delays", `is empty: write at least one, such as "30s"`)
	}
	delays := make([]time.Duration, len(spelled))
	for i, s := range spelled {
		d, err := pipeline.ParseDelay(s)
		if err != nil {
			return nil, &FieldError{Field: fmt.Sprintf("delays[%d]", i), Err: err}
		}
		delays[i] = d
	}
	return delays, nil
}

func parseMaxAge(spelled string) (time.Duration, error) {
	if spelled == "" {
		return 0, nil
	}
	age, err := pipeline.ParseMaxAge(spelled)
	if err != nil {
		return 0, &FieldError{Field: "max_age", Err: err}
	}
	return age, nil
}

// maxAttemptsIn is how often a message is delivered that failed in this work queue.
func (p *Pipeline) maxAttemptsIn(queue string) int64 {
	if own := p.workQueues[queue].MaxAttempts; own != 0 {
		return int64(own)
	}
	return p.maxAttempts
}

func (p *Pipeline) checkName() error {
	name := string(p.Names)
	if name == "" {
		return fieldErrorf("name", "is missing")
	}
	if strings.Contains(name, pipeline.Separator) {
		return fieldErrorf("name", "%q contains %q, which is reserved", name, pipeline.Separator)
	}
	for _, delay := range p.delays {
		if queue := p.Names.RetryQueue(delay); len(queue) > maxShortString {
			return fieldErrorf("name", "is too long: the queue name %q has more than %d bytes", queue, maxShortString)
		}
	}
	return nil
}

func (p *Pipeline) checkRetryOn() error {
	known := pipeline.Reasons()
	for i, reason := range p.retryOn {
		if !slices.Contains(known, reason) {
			return fieldErrorf(fmt.Sprintf("retry_on[%d]", i), "%q is not a reason: write one of %s", reason, strings.Join(known, ", "))
		}
	}
	if !slices.Contains(p.retryOn, pipeline.ReasonRejected) {
		return fieldErrorf("retry_on", "must contain %q: it adds reasons to that one", pipeline.ReasonRejected)
	}
	return nil
}

func (p *Pipeline) checkWorkQueues() error {
	for _, queue := range slices.Sorted(maps.Keys(p.workQueues)) { // so that the error is always the same
		field := fmt.Sprintf("work_queues[%q]", queue)
		switch {
		case queue == "" || len(queue) > maxShortString:
			return fieldErrorf(field, "is not a queue name: it needs 1 to %d bytes", maxShortString)
		case p.Names.OwnsQueue(queue):
			return fieldErrorf(field, "is a queue of the pipeline itself: its messages would go round for ever")
		}
	}
	return nil
}

func fieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}
