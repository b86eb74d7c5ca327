package main

import (
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// schedule is the pipeline's retry schedule, from the sidecar's configuration.
type schedule struct {
	names       pipeline.Names
	maxAttempts int
	delays      []time.Duration
}

func newSchedule(w pipeline.Worker) (schedule, error) {
	s := schedule{names: pipeline.Names(w.Name), maxAttempts: w.MaxAttempts}
	for _, spelled := range w.Delays {
		delay, err := pipeline.ParseDelay(spelled)
		if err != nil {
			return s, fmt.Errorf("the output worker_config: %w", err)
		}
		s.delays = append(s.delays, delay)
	}
	return s, nil
}

// delay is how long a message waits after this number of failed attempts.
func (s schedule) delay(failed int) time.Duration { return s.delays[min(failed, len(s.delays))-1] }

// retryQueue is the queue where the message waits.
func (s schedule) retryQueue(failed int) string { return s.names.RetryQueue(s.delay(failed)) }
