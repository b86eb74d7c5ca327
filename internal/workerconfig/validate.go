package workerconfig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
)

// ID identifies an element of a configuration.
type ID struct {
	Kind        rules.FlowKind
	Name, Vhost string
}

// PipelineID is the ID of a pipeline.
func PipelineID(w pipeline.Worker) ID { return ID{rules.Pipeline, w.Name, w.Vhost} }

// DelayedExchangeID is the ID of a delayed exchange.
func DelayedExchangeID(w delayed.Worker) ID { return ID{rules.DelayedExchange, w.Name, w.Vhost} }

func (id ID) String() string {
	return fmt.Sprintf("%s %q in vhost %q", id.Kind.Words(), id.Name, id.Vhost)
}

// Validate finds the mistakes in one pipeline of the configuration. Paths begin within its object.
func Validate(w pipeline.Worker) []problem.Problem {
	problems := slices.Concat(
		checkVersion(w.Version, pipeline.WorkerVersion),
		checkVhost(w.Vhost),
		rules.CheckDelays(w.Delays),
		rules.CheckAttempts(problem.Path{"max_attempts"}, int64(w.MaxAttempts)),
		rules.Pipeline.CheckName(w.Name),
	)
	if w.MaxAge != "" {
		problems = append(problems, rules.CheckMaxAge(problem.Path{"max_age"}, w.MaxAge)...)
	}
	if len(problems) > 0 {
		return problems // the other checks need valid names and delays
	}
	queues := []string{pipeline.Names(w.Name).RefusedQueue()}
	for _, spelled := range w.Delays {
		delay, _ := pipeline.ParseDelay(spelled) // is valid
		queues = append(queues, pipeline.Names(w.Name).RetryQueue(delay))
	}
	problems = rules.CheckLengths(rules.Pipeline, queues...)
	if len(w.RetryOn) > 0 {
		problems = append(problems, rules.CheckRetryOn(w.RetryOn)...)
	}
	for _, queue := range slices.Sorted(maps.Keys(w.WorkQueues)) { // so that the order is always the same
		at := problem.Path{"work_queues", problem.MapKey(queue)}
		problems = append(problems, rules.CheckQueueName(at, pipeline.Names(w.Name), queue)...)
		if attempts := w.WorkQueues[queue].MaxAttempts; attempts != 0 {
			problems = append(problems, rules.CheckAttempts(append(at, "max_attempts"), int64(attempts))...)
		}
	}
	return problems
}

// checkVersion refuses an element without a version, since a default would be a guess once there are two.
func checkVersion(version, known int) []problem.Problem {
	switch version {
	case known:
		return nil
	case 0:
		return one("version", "No version", "is missing; write %d", known)
	default:
		return one("version", "Unknown version", "%d is not a version that this worker reads; write %d",
			version, known)
	}
}

func checkVhost(vhost string) []problem.Problem {
	if vhost != "" {
		return nil
	}
	return one("vhost", "Empty vhost", `is missing; write the virtual host's name, "/" for the default one`)
}

func one(key, summary, detail string, args ...any) []problem.Problem {
	return []problem.Problem{problem.New(problem.Path{key}, summary, detail, args...)}
}
