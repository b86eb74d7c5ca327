package preflight

import (
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// CheckWorkQueue checks one work queue. The pipeline's name may be empty where it is not known yet.
func CheckWorkQueue(pipeline pipeline.Names, name string, workQueue pipeline.WorkQueue) []Problem {
	return checkWorkQueueAt(func(attributes ...any) Path {
		return append(Path{"work_queues", MapKey(name)}, attributes...)
	}, pipeline, name, workQueue)
}

func checkWorkQueueAt(place func(...any) Path, pipeline pipeline.Names, name string, workQueue pipeline.WorkQueue) []Problem {
	at := place()
	problems := workerconfig.CheckQueueName(at, pipeline, name)
	if name == "" {
		return problems
	}
	problems = append(problems, checkType(place("type"), workQueue.Type)...)
	problems = append(problems, checkAttach(place, workQueue)...)
	if workQueue.Declare && strings.HasPrefix(name, "amq.") {
		problems = append(problems, problem(at, "Reserved queue name", "Brokers keep names that begin with \"amq.\" for themselves. Choose another name than %q.", name))
	}
	return append(problems, checkArguments(place("arguments_json"), workQueue)...)
}

func checkAttach(place func(...any) Path, workQueue pipeline.WorkQueue) []Problem {
	switch workQueue.Attach {
	case "", pipeline.AttachPolicy:
	case pipeline.AttachArguments:
		if workQueue.PolicyDefinition != nil {
			return []Problem{problem(place("policy_definition"), "Policy of a queue that has none",
				"policy_definition goes with attach = \"policy\": with attach = \"arguments\" the pipeline writes no policy for the queue.")}
		}
	default:
		return []Problem{problem(place("attach"), "Unknown way to attach", "%q is neither \"policy\" nor \"arguments\".", workQueue.Attach)}
	}
	switch strategy := workQueue.DeadLetterStrategy; {
	case strategy == "" || strategy == topology.AtMostOnce || strategy == topology.AtLeastOnce && workQueue.Type == topology.Quorum:
		return nil
	case strategy == topology.AtLeastOnce:
		return []Problem{problem(place("dead_letter_strategy"), "Strategy of quorum queues only",
			"Only quorum queues dead-letter at least once. Write \"at-most-once\", or leave it out.")}
	default:
		return []Problem{problem(place("dead_letter_strategy"), "Unknown strategy", "%q is neither \"at-least-once\" nor \"at-most-once\".", strategy)}
	}
}

// reservedArguments would fight with the pipeline's policy, whose keys arguments beat.
var reservedArguments = map[string]string{
	"x-queue-type":              "the attribute type has it",
	pipeline.DeclaredByArgument: "the pipeline writes it itself",
	"x-dead-letter-exchange":    "the pipeline's policy sets it, and an argument would beat the policy",
	"x-dead-letter-routing-key": "the message's own routing key would be lost",
	"x-dead-letter-strategy":    "the pipeline's policy sets it, and an argument would beat the policy",
	"x-overflow":                "the pipeline's policy sets it; policy_definition has it where you may choose",
	"x-expires":                 "it deletes the queue with its messages",
}

func checkArguments(at Path, workQueue pipeline.WorkQueue) []Problem {
	if !workQueue.Declare && workQueue.Arguments != nil {
		return []Problem{problem(at, "Arguments of a queue that is not declared", "arguments_json goes with declare = true: a queue that exists already keeps its own arguments.")}
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(workQueue.Arguments)) {
		if why, reserved := reservedArguments[key]; reserved {
			problems = append(problems, problem(at, "Reserved argument", "Remove %q: %s.", key, why))
		}
		problems = append(problems, checkArgumentValue(at, key, workQueue)...)
	}
	return problems
}

func checkArgumentValue(at Path, key string, workQueue pipeline.WorkQueue) []Problem {
	limit := key == "x-max-length" || key == "x-max-length-bytes"
	if limit && workQueue.Strategy() == topology.AtLeastOnce {
		return []Problem{problem(at, "Length limit on a work queue with at-least-once dead-lettering",
			"At-least-once dead-lettering needs overflow = reject-publish, which would turn %q against the queue's publishers. Remove it, or write\n\n  dead_letter_strategy = \"at-most-once\"", key)}
	}
	switch value := workQueue.Arguments[key].(type) {
	case nil:
		return []Problem{problem(at, "Null argument", "Brokers refuse null. Remove %q or give it a value.", key)}
	case float64:
		if strings.HasPrefix(key, "x-") {
			return []Problem{problem(at, "Number with a fraction", "%q is %v; RabbitMQ's arguments take whole numbers, written without a point.", key, value)}
		}
	}
	return nil
}
