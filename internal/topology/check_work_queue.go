package topology

import (
	"maps"
	"slices"
	"strings"
)

// CheckWorkQueue checks one work queue. The pipeline's name may be empty where it is not known yet.
func CheckWorkQueue(pipeline Names, name string, workQueue WorkQueue) []Problem {
	at := Path{"work_queues", MapKey(name)}
	if name == "" {
		return []Problem{problem(at, "Empty work queue name", "Name the queue that your consumers read.")}
	}
	problems := checkType(append(slices.Clone(at), "type"), workQueue.Type)
	if pipeline != "" && pipeline.OwnsQueue(name) {
		problems = append(problems, problem(at, "Work queue belongs to the pipeline",
			"%q is one of the pipeline's own queues. Name the queue that your consumers read.", name))
	}
	if workQueue.Declare && strings.HasPrefix(name, "amq.") {
		problems = append(problems, problem(at, "Reserved queue name", "Brokers keep names that begin with \"amq.\" for themselves. Choose another name than %q.", name))
	}
	return append(problems, checkArguments(append(slices.Clone(at), "arguments_json"), workQueue)...)
}

// reservedArguments would fight with the pipeline's policy, whose keys arguments beat.
var reservedArguments = map[string]string{
	"x-queue-type":              "the attribute type has it",
	DeclaredByArgument:          "the pipeline writes it itself",
	"x-dead-letter-exchange":    "the pipeline's policy sets it, and an argument would beat the policy",
	"x-dead-letter-routing-key": "the message's own routing key would be lost",
	"x-dead-letter-strategy":    "the pipeline's policy sets it, and an argument would beat the policy",
	"x-overflow":                "the pipeline's policy sets it",
	"x-expires":                 "it deletes the queue with its messages",
}

func checkArguments(at Path, workQueue WorkQueue) []Problem {
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

func checkArgumentValue(at Path, key string, workQueue WorkQueue) []Problem {
	limit := key == "x-max-length" || key == "x-max-length-bytes"
	if limit && workQueue.Type == Quorum {
		return []Problem{problem(at, "Length limit on a quorum work queue",
			"At-least-once dead-lettering needs overflow = reject-publish, which would turn %q against the queue's publishers. Remove it.", key)}
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
