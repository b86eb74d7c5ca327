package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckWorkQueue checks one work queue. If the pipeline's name is not known yet, it is empty.
func CheckWorkQueue(pipeline pipeline.Names, name string, workQueue pipeline.WorkQueue) []Problem {
	return checkWorkQueueAt(workQueuePlace(name), pipeline, name, workQueue)
}

// workQueuePlace returns the path of a pipeline's work queue, or of one of its attributes.
func workQueuePlace(name string) func(attributes ...any) Path {
	return func(attributes ...any) Path { return append(Path{"work_queues", MapKey(name)}, attributes...) }
}

// attachmentPlace returns the path of an attachment, or of one of its attributes.
func attachmentPlace(attributes ...any) Path {
	if len(attributes) == 0 {
		return Path{"queue"}
	}
	return attributes
}

func checkWorkQueueAt(place func(...any) Path, p pipeline.Names, name string, workQueue pipeline.WorkQueue) []Problem {
	at := place()
	problems := rules.CheckQueueName(at, p, name)
	if name == "" {
		return problems
	}
	problems = append(problems, checkAttach(place, workQueue)...)
	problems = append(problems, checkFailedQueue(place, p, name, workQueue)...)
	problems = append(problems, checkTakeOver(place, p, name, workQueue)...)
	if workQueue.Declare && strings.HasPrefix(name, "amq.") {
		problems = append(problems, problem(at, "Reserved queue name", reservedByBrokers, name))
	}
	return append(problems, checkArguments(place("arguments_json"), workQueue)...)
}

func checkAttach(place func(...any) Path, workQueue pipeline.WorkQueue) []Problem {
	switch {
	case workQueue.Attach == pipeline.AttachArguments && workQueue.PolicyDefinition != nil:
		return []Problem{problem(place("policy_definition_json"), "policy_definition_json requires attach = \"policy\"",
			"With attach = \"arguments\" the pipeline writes no policy for the queue. Leave it out.")}
	case workQueue.DeadLetterStrategy == topology.AtLeastOnce && workQueue.Type != topology.Quorum:
		return []Problem{problem(place("dead_letter_strategy"), "at-least-once requires a quorum queue",
			"Only quorum queues dead-letter at least once. Write \"at-most-once\", or leave it out.")}
	}
	return nil
}

// checkTakeOver checks the settings for taking a queue over from another pipeline.
func checkTakeOver(place func(...any) Path, p pipeline.Names, name string, workQueue pipeline.WorkQueue) []Problem {
	at, from := place("take_over_from"), workQueue.TakeOverFrom
	switch {
	case from == "":
		return nil
	case from == string(p):
		return []Problem{problem(at, "Queue taken over from its own pipeline",
			"take_over_from names the pipeline itself. Name the other pipeline that has the queue, or leave it out.")}
	case workQueue.Declare:
		return []Problem{problem(at, "A declared queue cannot be taken over",
			"If another pipeline has queue %q, the queue exists already, so this pipeline must not declare it. "+
				"If the other pipeline declares it, set declare = false there first and apply: the queue stays. Then write "+
				"%q = { take_over_from = ... } here, without declare. Neither pipeline then manages queue %q.", name, name, name)}
	case !workQueue.ByPolicy():
		return []Problem{problem(at, "take_over_from requires attach = \"policy\"",
			"With attach = \"arguments\", the queue's arguments take precedence over any policy. "+
				"Declare it without dead-letter arguments, and attach it by policy.")}
	case pipeline.CannotBeMarked(name):
		return []Problem{problem(at, "Queue cannot be taken over", tildeInName+
			"Bindings of a queue that is taken over have arguments. Remove the queue from the other pipeline, "+
			"then add it here. Messages that are rejected between the two applies are lost.", name)}
	}
	problems := rules.Pipeline.CheckName(from)
	for i := range problems {
		problems[i].Path = at
	}
	return problems
}

// reservedArguments would take precedence over the pipeline's policy.
var reservedArguments = map[string]string{
	"x-queue-type":              "the attribute type sets it",
	pipeline.DeclaredByArgument: "the pipeline writes it itself",
	"x-dead-letter-exchange":    "the pipeline's policy sets it, and an argument would take precedence over it",
	"x-dead-letter-routing-key": "the message's own routing key would be lost",
	"x-dead-letter-strategy":    "the pipeline's policy sets it, and an argument would take precedence over it",
	"x-overflow":                "the pipeline's policy sets it; if you can choose it, write it in policy_definition_json",
	"x-expires":                 "it deletes the queue with its messages",
}

// unsupportedArguments are arguments that every release refuses for a queue type.
var unsupportedArguments = map[string][]string{
	topology.Quorum: {
		"x-initial-cluster-size", "x-max-age", "x-max-priority", "x-queue-master-locator", "x-queue-mode", "x-queue-version",
		"x-stream-max-segment-size-bytes",
	},
	topology.Classic: {
		"x-delivery-limit", "x-initial-cluster-size", "x-max-age", "x-max-in-memory-bytes", "x-max-in-memory-length",
		"x-quorum-initial-group-size", "x-stream-max-segment-size-bytes",
	},
}

func checkArguments(at Path, workQueue pipeline.WorkQueue) []Problem {
	if !workQueue.Declare && workQueue.Arguments != nil {
		return []Problem{problem(at, "Arguments of a queue that is not declared",
			"arguments_json requires declare = true: a queue that exists already keeps its own arguments.")}
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(workQueue.Arguments)) {
		if why, reserved := reservedArguments[key]; reserved {
			problems = append(problems, problem(at, "Reserved argument", removeArgument, key, why))
		}
		if slices.Contains(unsupportedArguments[workQueue.Type], key) {
			problems = append(problems, problem(at, "Unsupported argument", removeArgument, key,
				fmt.Sprintf("a %s queue does not support it, and RabbitMQ refuses to declare a queue with it", workQueue.Type)))
		}
		problems = append(problems, checkArgumentValue(at, key, workQueue)...)
	}
	return problems
}

func checkArgumentValue(at Path, key string, workQueue pipeline.WorkQueue) []Problem {
	limit := key == "x-max-length" || key == "x-max-length-bytes"
	if limit && workQueue.Strategy() == topology.AtLeastOnce {
		return []Problem{problem(at, "Length limit on a work queue with at-least-once dead-lettering",
			"At-least-once dead-lettering needs overflow = reject-publish. With %q, a full queue would reject its publishers' messages. "+
				"Remove the limit, or write\n\n  dead_letter_strategy = \"at-most-once\"\n\n"+
				"A dead letter is then lost if a node fails, or its target refuses it, while the dead letter is on its way.", key)}
	}
	switch value := workQueue.Arguments[key].(type) {
	case nil:
		return []Problem{problem(at, "Null argument", "Brokers refuse null. Remove %q or give it a value.", key)}
	case float64:
		if strings.HasPrefix(key, "x-") {
			return []Problem{problem(at, "Number with a fraction",
				"%q is %v. Numbers in RabbitMQ's arguments must be whole numbers, written without a point.", key, value)}
		}
	}
	return nil
}
