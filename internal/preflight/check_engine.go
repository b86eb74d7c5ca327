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
	var waits []time.Duration
	for i, delay := range p.Delays {
		waits = append(waits, delay.Wait)
		if delay.Wait == 0 {
			problems = append(problems, problem(Path{"delays", i}, "Delay of zero without a sidecar", noZeroDelay, p.Engine))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		problems = append(problems, checkEngineOf(p, name)...)
	}
	switch {
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
	at, w := workQueuePlace(name), p.WorkQueues[name]
	var problems []Problem
	if w.MaxAttempts != 0 {
		problems = append(problems, problem(at("max_attempts"), "max_attempts of a work queue without a sidecar", noQueueAttempts, p.Engine))
	}
	if p.Engine == pipeline.EngineNative && w.Type == topology.Classic {
		problems = append(problems, problem(at("type"), "Classic queue cannot delay by itself", noClassicDelay, name))
	}
	keys := p.BrokerKeys(name)
	for _, argument := range slices.Sorted(maps.Keys(w.Arguments)) {
		key, isX := strings.CutPrefix(argument, "x-")
		if _, needed := keys[key]; isX && needed && key != "dead-letter-routing-key" { // which checkArguments refuses
			problems = append(problems, problem(at("arguments_json"), "Reserved argument", removeArgument, argument,
				"the pipeline's policy sets it"))
		}
	}
	return problems
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

// Details of what an engine cannot do.
const (
	noMaxAge = "With engine = %q nobody compares the age of a message. " +
		"Leave max_age out, or write engine = \"worker\"."

	noRetryOn = "With engine = %q only what consumers reject is retried; what expires or is displaced is parked. " +
		"Leave retry_on out, or write engine = \"worker\"."

	noZeroDelay = "With engine = %q every retry waits. " +
		"Write a delay of 1ms or more, or engine = \"worker\"."

	noQueueAttempts = "With engine = %q all work queues have the max_attempts of the pipeline. " +
		"Leave it out, give the queue a pipeline of its own, or write engine = \"worker\"."

	noClassicDelay = "Queue %q is classic, and only quorum queues delay and count what is returned to them. " +
		"Leave it out, or choose engine = \"worker\" or \"consumer\" for the pipeline."

	oneDelayOnly = "With engine = \"consumer\" all retries wait in one queue, and %d delays are listed. " +
		"List one delay, or write engine = \"worker\"."

	linearOnly = "With engine = \"native\" RabbitMQ computes the delays: the first one, " +
		"twice, three times it and so on, up to the last one. " +
		"Write such a schedule, as in delays = [\"5s\", \"10s\", \"15s\"], or engine = \"worker\"."
)

// Details of a broker that is too old for an engine.
const (
	tooOldForNative = "The broker is RabbitMQ %s. " +
		"Quorum queues delay by a policy from 4.3.1 on. " +
		"An older broker refuses the policy, or has the queue return messages at once, thousands of times a second. " +
		"Write engine = \"worker\", which needs 3.10, or upgrade first."

	tooOldForConsumer = "The broker is RabbitMQ %s. " +
		"Before 4.0, a headers exchange does not see why a message died (x-last-death-reason), so no rejected message would be retried. " +
		"Write engine = \"worker\", which needs 3.10, or upgrade first."

	engineOfPipeline = "The definition of the pipeline %[1]q on the broker says engine = %[2]q. " +
		"Write engine = %[2]q here, too, or attach the queue to another pipeline."

	unreadableEngine = "The engine of the pipeline %q is in its definition on the broker, which cannot be read: %s.\n\n" +
		"If it has the definition of a newer release, upgrade. Otherwise run terraform apply where the pipeline is, " +
		"which restores the definition; where one configuration has both, refer to it: pipeline = rabbitmq_retry_pipeline.orders.name."

	nativeAttachment = "The delays of engine = \"native\" are in the policy of each work queue, and an attachment does not know them. " +
		"List the queue in the work_queues of the pipeline."
)

// What consumers must call.
const (
	callWorker = "With requeue=true a message comes back at once, without a delay. The guide \"Which engine\" says what each call does."

	callNative = "With requeue=false a message is parked at its first failure. The guide \"Which engine\" says what each call does."

	callConsumer = "Without the code in the guide \"Which engine\", a message that always fails comes back indefinitely."

	holdWhileMoved = "Consumers of %q call the wrong method from the moment of the take-over from %q on, until they are changed, " +
		"and what fails meanwhile is parked without a retry. " +
		"Before this apply, have them keep a message that failed for a second, and then call basic.nack with requeue=true: " +
		"RabbitMQ 4.3 does not count that, and it is right for both engines. " +
		"After it, have them call what this pipeline needs. " +
		"The steps are in the guide \"Which engine\". " +
		"If nothing is consumed from %q meanwhile, there is nothing to do."
)
