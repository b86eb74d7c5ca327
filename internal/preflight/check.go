package preflight

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// maxName is how long the name of an exchange or a queue may be, in bytes (AMQP's short string).
const maxName = 255

// CheckName checks a pipeline's name by itself.
func CheckName(name string) []Problem {
	at := Path{"name"}
	switch {
	case name == "":
		return []Problem{problem(at, "Empty pipeline name", "Name the pipeline: its exchanges and queues begin with this name.")}
	case strings.Contains(name, pipeline.Separator):
		return []Problem{problem(at, "Reserved character in the pipeline's name",
			"%q contains %q, which separates the parts of policy names. Use another character, such as a dot or a hyphen; "+
				"names of work queues and vhosts may contain it.", name, pipeline.Separator)}
	case strings.HasPrefix(name+".", "amq."):
		return []Problem{problem(at, "Reserved pipeline name", "Brokers keep names that begin with \"amq.\" for themselves. Choose another name than %q.", name)}
	}
	return nil
}

// CheckDelays checks the spelling and the range of each delay.
func CheckDelays(delays []string) []Problem {
	if len(delays) == 0 {
		return []Problem{problem(Path{"delays"}, "No delays", "Write at least one delay, such as [\"5s\"]; [\"0s\"] retries at once.")}
	}
	var problems []Problem
	for i, delay := range delays {
		if _, err := pipeline.ParseDelay(delay); err != nil {
			problems = append(problems, problem(Path{"delays", i}, "Invalid delay", "%s.", err))
		}
	}
	return problems
}

// CheckAttempts checks the number of attempts.
func CheckAttempts(maxAttempts int64) []Problem {
	return checkAttemptsAt(Path{"max_attempts"}, maxAttempts)
}

// CheckQueueAttempts checks the number of attempts of one work queue. Terraform does not show which
// element of a map an error is about.
func CheckQueueAttempts(queue string, maxAttempts int64) []Problem {
	problems := checkAttemptsAt(Path{"work_queues", MapKey(queue), "max_attempts"}, maxAttempts)
	for i := range problems {
		problems[i].Detail = fmt.Sprintf("Work queue %q: ", queue) + problems[i].Detail
	}
	return problems
}

func checkAttemptsAt(at Path, maxAttempts int64) []Problem {
	switch {
	case maxAttempts < 2:
		return []Problem{problem(at, "Too few attempts",
			"max_attempts counts every delivery, the first one included, so %d means that nothing is ever retried. Write 2 or more.", maxAttempts)}
	case maxAttempts > math.MaxInt32:
		return []Problem{problem(at, "Too many attempts", "max_attempts is %d; it may be at most %d.", maxAttempts, math.MaxInt32)}
	}
	return nil
}

// CheckSchedule checks that some message waits for each of the delays.
func CheckSchedule(maxAttempts, delays int, workQueues map[string]pipeline.WorkQueue) []Problem {
	most := maxAttempts
	for _, workQueue := range workQueues {
		most = max(most, workQueue.MaxAttempts)
	}
	if most-1 < delays {
		return []Problem{problem(Path{"max_attempts"}, "Delays that are never used",
			"With max_attempts = %d a message waits %d times, but %d delays are listed. Raise max_attempts to %d, or remove the delays at the end.",
			most, most-1, delays, delays+1)}
	}
	return nil
}

// CheckMaxAge checks the spelling and the range of an age.
func CheckMaxAge(age string) []Problem {
	if _, err := pipeline.ParseMaxAge(age); err != nil {
		return []Problem{problem(Path{"max_age"}, "Invalid age", "%s.", err)}
	}
	return nil
}

// WarnOfMaxAge finds an age at which nothing is retried.
func WarnOfMaxAge(p pipeline.Pipeline) []Problem {
	if len(p.Delays) == 0 || p.MaxAge.Wait == 0 || p.MaxAge.Wait >= p.Delays[0].Wait {
		return nil
	}
	return []Problem{problem(Path{"max_age"}, "No message is ever retried",
		"The first delay is %s, and max_age = %q does not let a message come back so late after it failed: each goes to the failed queue as \"too_old\" at once. "+
			"Raise max_age, or shorten the first delay.", p.Delays[0].Spelling, p.MaxAge.Spelling)}
}

// CheckRetryOn checks the reasons for which messages are retried.
func CheckRetryOn(reasons []string) []Problem {
	at := Path{"retry_on"}
	for _, reason := range reasons {
		if !slices.Contains(pipeline.Reasons(), reason) {
			return []Problem{problem(at, "Unknown reason", "%q is not a reason for which RabbitMQ dead-letters a message. Known are: %s.",
				reason, strings.Join(pipeline.Reasons(), ", "))}
		}
	}
	if !slices.Contains(reasons, pipeline.ReasonRejected) {
		return []Problem{problem(at, "Rejected messages must be retried",
			"A pipeline always retries what consumers reject; retry_on adds other reasons to it. Write %q into the set.", pipeline.ReasonRejected)}
	}
	return nil
}

// CheckQueueType checks the type of the pipeline's own queues.
func CheckQueueType(queueType string) []Problem { return checkType(Path{"queue_type"}, queueType) }

func checkType(at Path, queueType string) []Problem {
	switch queueType {
	case topology.Quorum, topology.Classic:
		return nil
	case "stream":
		return []Problem{problem(at, "Streams cannot be retried", "Consumers cannot reject a stream's messages. Write \"quorum\" or \"classic\".")}
	}
	return []Problem{problem(at, "Unknown queue type", "%q is not a queue type. Write \"quorum\" or \"classic\".", queueType)}
}

// CheckLengths checks that the broker takes the names that the pipeline expands to.
func CheckLengths(p pipeline.Pipeline) []Problem {
	longest := p.Names().ReturnExchange()
	for queue := range pipeline.Expand(p).Queues {
		if _, isWork := p.WorkQueues[queue]; !isWork && len(queue) > len(longest) {
			longest = queue
		}
	}
	var problems []Problem
	if detail := tooLong(p.Vhost, longest, p.QueueType); detail != "" {
		problems = append(problems, problem(Path{"name"}, "Name too long", "The pipeline's name expands to %q, and %s. Choose a shorter name.", longest, detail))
	}
	for name, workQueue := range p.WorkQueues {
		if detail := tooLong(p.Vhost, name, workQueue.Type); detail != "" {
			problems = append(problems, problem(Path{"work_queues", MapKey(name)}, "Name too long", "For the work queue %q, %s.", name, detail))
		}
	}
	return problems
}

// tooLong says why a broker refuses the name. The files of a quorum queue are named after its
// vhost and its name together (rabbit_queue_type_util), where "/" counts as "%2F".
func tooLong(vhost, name, queueType string) string {
	if len(name) > maxName {
		return "names may have at most 255 bytes"
	}
	onDisk := strings.ReplaceAll(vhost, "/", "%2F") + "_" + name
	if queueType == topology.Quorum && len(onDisk) > maxName {
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
	return []Problem{problem(Path{at}, "Definition too long",
		"The pipeline's definition, which is kept on the broker, has %d bytes; it may have at most %d, and fewer with many quotes in it. %s.", len(definition.String()), pipeline.MaxDefinition, remedy)}
}

// largestPart is the attribute that takes most of the definition, and how to make it shorter.
func largestPart(d pipeline.Definition) (attribute, remedy string) {
	delays, policy, queues := len(topology.Arguments{"": d.Delays}.Key()), len(d.PolicyDefinition.Key()), len(topology.Arguments{"": d.QueueMaxAttempts}.Key())
	switch max(delays, policy, queues) {
	case queues:
		return "work_queues", "Set max_attempts of a work queue only where it differs from the pipeline's, or divide the queues among several pipelines"
	case policy:
		return "policy_definition", "Shorten it, or move keys that only some work queues need into the policy_definition of those, which is kept elsewhere"
	}
	return "delays", "List fewer delays: the last one repeats"
}
