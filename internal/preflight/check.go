// Package preflight finds every reason why a configuration cannot work, before anything is applied. It checks the
// configuration alone, and then against a live vhost. Each reason has the attribute's path and a remedy, if possible as
// HCL to paste.
package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	described "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckRetryOn checks the reasons why messages are retried. They are a set, so the problems' paths have no index.
func CheckRetryOn(reasons []string) []Problem {
	problems := rules.CheckRetryOn(reasons)
	for i := range problems {
		problems[i].Path = problems[i].Path[:1]
		if !slices.Contains(reasons, pipeline.ReasonRejected) {
			problems[i].Detail += fmt.Sprintf(" Add %q to the set.", pipeline.ReasonRejected)
		}
	}
	return problems
}

// CheckSchedule checks that some message uses each of the delays.
func CheckSchedule(maxAttempts, delays int, workQueues map[string]pipeline.WorkQueue) []Problem {
	most := maxAttempts
	for _, workQueue := range workQueues {
		most = max(most, workQueue.MaxAttempts)
	}
	if maxAttempts < pipeline.FewestAttempts || most-1 >= delays {
		return nil // or another check reports the number itself
	}
	times := "once"
	if most > pipeline.FewestAttempts {
		times = fmt.Sprintf("%d times", most-1)
	}
	return []Problem{problem(Path{"max_attempts"}, "Delays that are never used",
		"With max_attempts = %d a message waits %s, but %d delays are listed. "+
			"Raise max_attempts to %d, or remove the delays at the end.", most, times, delays, delays+1)}
}

// WarnOfMaxAge warns if the maximum age is too short for any retry.
func WarnOfMaxAge(p pipeline.Pipeline) []Problem {
	if len(p.Delays) == 0 || p.MaxAge.Wait == 0 || p.MaxAge.Wait >= p.Delays[0].Wait {
		return nil
	}
	return []Problem{problem(Path{"max_age"}, "No message is ever retried",
		"The first delay is %s, which is longer than max_age = %q. "+
			"So each message goes to the failed queue as \"too_old\" at once. Raise max_age, or shorten the first delay.",
		p.Delays[0].Spelling, p.MaxAge.Spelling)}
}

// WarnOfDecreasing warns of a new list of delays with one that is shorter than the one before.
func WarnOfDecreasing(p pipeline.Pipeline, prior *pipeline.Pipeline) []Problem {
	delays, known := p.Delays, prior != nil && slices.Equal(prior.Delays, p.Delays)
	for i := 1; i < len(delays) && !known; i++ {
		if before := delays[i-1]; delays[i].Wait < before.Wait {
			return []Problem{problem(Path{"delays", i}, "Delays decrease", "The delay %q comes after the longer %q, so a message that "+
				"fails again and again is retried sooner. Delays are used in the order of the list. If you mean that, leave it.",
				delays[i].Spelling, before.Spelling)}
		}
	}
	return nil
}

// CheckLengths checks that brokers accept the names that the pipeline expands to.
func CheckLengths(p pipeline.Pipeline) []Problem {
	own := topology.Topology{Exchanges: pipeline.ExpandExchanges(p), Queues: p.OwnQueues()}
	for _, name := range p.FailedQueues() { // CheckFailedQueues checks them
		delete(own.Queues, name)
	}
	problems := checkOwnLengths(rules.Pipeline, p.Vhost, own)
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		if detail := tooLong(p.Vhost, name, p.WorkQueues[name].Type); detail != "" && len(name) <= rules.MaxName { // see CheckWorkQueue
			problems = append(problems, problem(Path{"work_queues", MapKey(name)}, "Name too long", "For the work queue %q, %s.", name, detail))
		}
	}
	return problems
}

// tooLong says why a broker refuses the name. A quorum queue's files are named after its vhost and name together
// (rabbit_queue_type_util), with "/" as "%2F".
func tooLong(vhost, name, queueType string) string {
	if len(name) > rules.MaxName {
		return rules.NamesAreShort
	}
	onDisk := strings.ReplaceAll(vhost, "/", "%2F") + "_" + name
	if queueType == topology.Quorum && len(onDisk) > rules.MaxName {
		return "for a quorum queue, vhost and name together can have at most 254 bytes"
	}
	return ""
}

// CheckDefinition checks that the broker accepts the pipeline's definition.
func CheckDefinition(p pipeline.Pipeline) []Problem {
	definition := p.Definition()
	if stored.Fits(definition.String()) {
		return nil
	}
	at, remedy := largestPart(definition)
	return []Problem{problem(Path{at}, "Definition too long",
		"The pipeline's definition, which is kept on the broker, has %d bytes. "+
			"It can have at most %d, and fewer with many quotes in it. %s.", len(definition.String()), stored.MaxDefinition, remedy)}
}

// largestPart returns the attribute that takes most space in the definition, and how to shorten it.
func largestPart(d pipeline.Definition) (attribute, remedy string) {
	delays, queues := len(topology.Arguments{"": d.Delays}.Key()), len(topology.Arguments{"": d.QueueMaxAttempts}.Key())
	policy := len(d.PolicyDefinition.Key())
	switch max(delays, policy, queues) {
	case queues:
		return "work_queues", "Set max_attempts of a work queue only where it differs from the pipeline's, " +
			"or divide the queues among several pipelines"
	case policy:
		return "policy_definition_json",
			"Shorten it, or move keys that only some work queues need into their policy_definition_json, which is kept elsewhere"
	}
	return "delays", "List fewer delays: the last one repeats"
}

// CheckAttachment checks an attachment without a broker.
func CheckAttachment(a pipeline.Attachment) []Problem {
	problems := rules.Pipeline.CheckName(a.Pipeline)
	for i := range problems {
		problems[i].Path = Path{"pipeline"}
	}
	if a.AsPipeline().Facts().InQueue {
		problems = append(problems, problem(Path{"engine"}, "Queue cannot be attached from outside", nativeAttachment))
	}
	problems = append(problems, checkWorkQueueAt(attachmentPlace, pipeline.Names(a.Pipeline), a.Queue, a.WorkQueue)...)
	if pipeline.CannotBeMarked(a.Queue) {
		// rabbit_mgmt_format:pack_binding_props fails when it joins such a key and arguments.
		problems = append(problems, problem(Path{"queue"}, "Queue cannot be attached from outside", tildeInName+
			"Bindings of an attachment have arguments. "+
			"List the queue in the work_queues of the pipeline itself, whose bindings have no arguments.", a.Queue))
	}
	return append(problems, checkPolicyDefinition(Path{"policy_definition_json"}, a.AsPipeline(), a.Queue, a.WorkQueue.PolicyDefinition)...)
}

// CheckDelayedExchange checks a delayed exchange without a broker.
func CheckDelayedExchange(e delayed.Exchange) []Problem {
	w := e.Worker()
	if problems := rules.CheckDelayedExchange(w.Name, w.MaxDelay, w.Precision); len(problems) > 0 {
		return problems
	}
	if problems := checkOwnLengths(rules.DelayedExchange, e.Vhost, e.Expand()); len(problems) > 0 {
		return problems
	}
	if definition := e.Definition().String(); !stored.Fits(definition) {
		return []Problem{problem(Path{"max_delay"}, "Definition too long",
			"The definition has %d bytes. Write durations more simply.", len(definition))}
	}
	return nil
}

// checkOwnLengths describes the longest of the names that brokers do not accept.
func checkOwnLengths(kind rules.FlowKind, vhost string, own topology.Topology) []Problem {
	names := slices.Concat(slices.Sorted(maps.Keys(own.Exchanges)), slices.Sorted(maps.Keys(own.Queues)))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, name := range names {
		if detail := tooLong(vhost, name, own.Queues[name].Type); detail != "" {
			return []Problem{rules.NameTooLong(kind, name, detail)}
		}
	}
	return nil
}

// Details of problems in a configuration.
const (
	reservedByBrokers = "Brokers reserve names that begin with \"amq.\". Choose another name than %q."

	removeArgument = "Remove %q: %s."

	tildeInName = "The name %q has a ~. " +
		"If a binding has both such a routing key and arguments, RabbitMQ's management API fails for the whole vhost. "
)

// A plan and the sidecar's configuration describe problems in the same way.
type (
	// Problem is a reason why a specification cannot work, with its place and its remedy.
	Problem = described.Problem
	// Path leads to an attribute.
	Path = described.Path
	// MapKey is a key of a map in a Path.
	MapKey = described.MapKey
)

func problem(path Path, summary, detail string, args ...any) Problem {
	return described.New(path, summary, detail, args...)
}

// Bullets lists texts, one on each line.
func Bullets(texts []string) string { return "  - " + strings.Join(texts, "\n  - ") }

// BulletsOf lists bindings, one on each line.
func BulletsOf(bindings []topology.Binding) string { return Bullets(topology.Texts(bindings)) }
