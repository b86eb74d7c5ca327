package preflight

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckEngine finds settings that the engine does not support. The worker supports all.
func CheckEngine(p pipeline.Pipeline) []Problem {
	if p.HasWorker() {
		return nil
	}
	var problems []Problem
	if p.MaxAge.Wait != 0 {
		problems = append(problems, problem(Path{"max_age"}, "max_age without a sidecar",
			"With engine = %q the age of a message does not count. Leave max_age out, or write engine = \"worker\".", p.Engine))
	}
	if slices.ContainsFunc(p.RetryOn, func(reason string) bool { return reason != pipeline.ReasonRejected }) {
		problems = append(problems, problem(Path{"retry_on"}, "retry_on without a sidecar",
			"With engine = %q only rejected messages are retried. Expired and displaced messages are parked. "+
				"Leave retry_on out, or write engine = \"worker\".", p.Engine))
	}
	var waits []time.Duration
	for i, delay := range p.Delays {
		waits = append(waits, delay.Wait)
		if delay.Wait == 0 {
			problems = append(problems, problem(Path{"delays", i}, "Delay of zero without a sidecar",
				"With engine = %q every retry waits. Write a delay of 1ms or more, or engine = \"worker\".", p.Engine))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		problems = append(problems, checkEngineOf(p, name)...)
	}
	if summary, detail := p.Facts().Misfit(waits); summary != "" {
		problems = append(problems, problem(Path{"delays"}, summary, "%s", detail))
	}
	return problems
}

// checkEngineOf finds settings of one work queue that the engine does not support.
func checkEngineOf(p pipeline.Pipeline, name string) []Problem {
	at, w := workQueuePlace(name), p.WorkQueues[name]
	var problems []Problem
	if w.MaxAttempts != 0 {
		problems = append(problems, problem(at("max_attempts"), "max_attempts of a work queue without a sidecar",
			"With engine = %q all work queues have the max_attempts of the pipeline. "+
				"Leave it out, give the queue a pipeline of its own, or write engine = \"worker\".", p.Engine))
	}
	if p.Facts().InQueue && w.Type == topology.Classic {
		problems = append(problems, problem(at("type"), "Classic queue cannot delay by itself",
			"Queue %q is classic, and only quorum queues delay and count returned messages. "+
				"Leave it out, or choose engine = \"worker\" or \"consumer\" for the pipeline.", name))
	}
	keys := p.BrokerKeys(name)
	for _, argument := range slices.Sorted(maps.Keys(w.Arguments)) {
		key, isX := strings.CutPrefix(argument, "x-")
		if _, needed := keys[key]; isX && needed && key != "dead-letter-routing-key" { // checkArguments refuses that key
			problems = append(problems, problem(at("arguments_json"), "Reserved argument", removeArgument, argument,
				"the pipeline's policy sets it"))
		}
	}
	return problems
}

// ConsumersCall says how consumers must return a message that they cannot process.
func ConsumersCall(p pipeline.Pipeline) Problem {
	return problem(Path{"engine"}, "Consumers must "+p.Facts().Call, "%s", p.Facts().Otherwise)
}

const nativeAttachment = "The delays of engine = \"native\" are in the policy of each work queue, and an attachment does not know them. " +
	"List the queue in the work_queues of the pipeline."
