package preflight

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckEngine finds what the engine cannot do. The worker can do everything.
func CheckEngine(p pipeline.Pipeline) []Problem {
	if p.HasWorker() {
		return nil
	}
	problems := onlyWithWorker(p)
	for i, delay := range p.Delays {
		if delay.Wait == 0 {
			problems = append(problems, problem(Path{"delays", i}, "Delay of zero without a sidecar", noZeroDelay, p.Engine))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		problems = append(problems, checkEngineOf(p, name)...)
	}
	switch waits := waitsOf(p); {
	case p.Engine == pipeline.EngineConsumer && len(waits) != 1:
		problems = append(problems, problem(Path{"delays"}, "More than one delay without a sidecar", oneDelayOnly, len(waits)))
	case p.Engine == pipeline.EngineNative && len(waits) > 0 && !pipeline.IsLinear(waits):
		problems = append(problems, problem(Path{"delays"}, "Schedule that RabbitMQ cannot delay by itself", linearOnly))
	}
	return problems
}

// onlyWithWorker finds settings that nobody but a worker can follow.
func onlyWithWorker(p pipeline.Pipeline) []Problem {
	var problems []Problem
	if p.MaxAge.Wait != 0 {
		problems = append(problems, problem(Path{"max_age"}, "max_age without a sidecar", noMaxAge, p.Engine))
	}
	if slices.ContainsFunc(p.RetryOn, func(reason string) bool { return reason != pipeline.ReasonRejected }) {
		problems = append(problems, problem(Path{"retry_on"}, "retry_on without a sidecar", noRetryOn, p.Engine))
	}
	return problems
}

// checkEngineOf finds what the engine cannot do for one work queue.
func checkEngineOf(p pipeline.Pipeline, name string) []Problem {
	at, w := Path{"work_queues", MapKey(name)}, p.WorkQueues[name]
	var problems []Problem
	if w.MaxAttempts != 0 {
		problems = append(problems, problem(append(slices.Clone(at), "max_attempts"), "max_attempts of a work queue without a sidecar",
			noQueueAttempts, p.Engine))
	}
	if p.Engine == pipeline.EngineNative && w.Type == topology.Classic {
		problems = append(problems, problem(append(slices.Clone(at), "type"), "Classic queue cannot delay by itself", noClassicDelay, name))
	}
	keys := p.BrokerKeys(name)
	for _, argument := range slices.Sorted(maps.Keys(w.Arguments)) {
		key, isX := strings.CutPrefix(argument, "x-")
		if _, needed := keys[key]; isX && needed && key != "dead-letter-routing-key" { // which checkArguments refuses
			problems = append(problems, problem(append(slices.Clone(at), "arguments_json"), "Reserved argument", removeArgument, argument,
				"the pipeline's policy sets it"))
		}
	}
	return problems
}

func waitsOf(p pipeline.Pipeline) []time.Duration {
	waits := make([]time.Duration, len(p.Delays))
	for i, delay := range p.Delays {
		waits[i] = delay.Wait
	}
	return waits
}

// ConsumersCall says what consumers must call when they cannot process a message.
func ConsumersCall(engine string) Problem {
	at := Path{"engine"}
	switch engine {
	case pipeline.EngineNative:
		return problem(at, "Consumers must call basic.reject(requeue=true)", callNative)
	case pipeline.EngineConsumer:
		return problem(at, "Consumers must count, and call basic.nack(requeue=false)", callConsumer)
	}
	return problem(at, "Consumers must call basic.nack(requeue=false)", callWorker)
}
