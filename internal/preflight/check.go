package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// CheckRetryOn checks the reasons for which messages are retried. They are a set, which has no indexes.
func CheckRetryOn(reasons []string) []Problem {
	problems := workerconfig.CheckRetryOn(reasons)
	for i := range problems {
		problems[i].Path = problems[i].Path[:1]
		if !slices.Contains(reasons, pipeline.ReasonRejected) {
			problems[i].Detail += fmt.Sprintf(" Write %q into the set.", pipeline.ReasonRejected)
		}
	}
	return problems
}

// CheckSchedule checks that some message waits for each of the delays.
func CheckSchedule(maxAttempts, delays int, workQueues map[string]pipeline.WorkQueue) []Problem {
	most := maxAttempts
	for _, workQueue := range workQueues {
		most = max(most, workQueue.MaxAttempts)
	}
	if maxAttempts < pipeline.FewestAttempts || most-1 >= delays {
		return nil // or what is wrong with the number itself was said
	}
	times := "once"
	if most > pipeline.FewestAttempts {
		times = fmt.Sprintf("%d times", most-1)
	}
	return []Problem{problem(Path{"max_attempts"}, "Delays that are never used", unusedDelays, most, times, delays, delays+1)}
}

// WarnOfMaxAge finds an age at which nothing is retried.
func WarnOfMaxAge(p pipeline.Pipeline) []Problem {
	if len(p.Delays) == 0 || p.MaxAge.Wait == 0 || p.MaxAge.Wait >= p.Delays[0].Wait {
		return nil
	}
	return []Problem{problem(Path{"max_age"}, "No message is ever retried", tooOldAtOnce, p.Delays[0].Spelling, p.MaxAge.Spelling)}
}

// CheckLengths checks that the broker takes the names that the pipeline expands to.
func CheckLengths(p pipeline.Pipeline) []Problem {
	longest, queues := p.Names().ReturnExchange(), pipeline.Expand(p).Queues
	for _, queue := range slices.Sorted(maps.Keys(queues)) {
		_, isWork := p.WorkQueues[queue]
		_, isFailed := p.FailedQueues()[queue] // see CheckFailedQueues
		if !isWork && !isFailed && len(queue) > len(longest) {
			longest = queue
		}
	}
	var problems []Problem
	if detail := tooLong(p.Vhost, longest, cmp.Or(queues[longest].Type, p.QueueType)); detail != "" {
		problems = append(problems, workerconfig.NameTooLong(workerconfig.Pipeline, longest, detail))
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		if detail := tooLong(p.Vhost, name, p.WorkQueues[name].Type); detail != "" && len(name) <= workerconfig.MaxName { // see CheckWorkQueue
			problems = append(problems, problem(Path{"work_queues", MapKey(name)}, "Name too long", "For the work queue %q, %s.", name, detail))
		}
	}
	return problems
}

// tooLong says why a broker refuses the name. The files of a quorum queue are named after its
// vhost and its name together (rabbit_queue_type_util), where "/" counts as "%2F".
func tooLong(vhost, name, queueType string) string {
	if len(name) > workerconfig.MaxName {
		return workerconfig.NamesAreShort
	}
	onDisk := strings.ReplaceAll(vhost, "/", "%2F") + "_" + name
	if queueType == topology.Quorum && len(onDisk) > workerconfig.MaxName {
		return "for a quorum queue, vhost and name together may have at most 254 bytes"
	}
	return ""
}

// CheckDefinition checks that the broker takes the pipeline's definition.
func CheckDefinition(p pipeline.Pipeline) []Problem {
	definition := p.Definition()
	if definition.Fits() {
		return nil
	}
	at, remedy := largestPart(definition)
	return []Problem{problem(Path{at}, "Definition too long", definitionTooLong, len(definition.String()), stored.MaxDefinition, remedy)}
}

// largestPart is the attribute that takes most of the definition, and how to make it shorter.
func largestPart(d pipeline.Definition) (attribute, remedy string) {
	delays, queues := len(topology.Arguments{"": d.Delays}.Key()), len(topology.Arguments{"": d.QueueMaxAttempts}.Key())
	policy := len(d.PolicyDefinition.Key())
	switch max(delays, policy, queues) {
	case queues:
		return "work_queues", fewerQueueAttempts
	case policy:
		return "policy_definition", shorterPolicy
	}
	return "delays", fewerDelays
}
