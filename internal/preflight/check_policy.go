package preflight

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckPolicies checks the user's policy keys for work queues that are attached by policy.
func CheckPolicies(p pipeline.Pipeline) []Problem {
	var problems []Problem
	for _, name := range p.AttachedByPolicy() {
		w := p.WorkQueues[name]
		at := Path{"work_queues", MapKey(name), "policy_definition_json"}
		if w.PolicyDefinition == nil {
			at = Path{"policy_definition_json"}
		}
		problems = append(problems, checkPolicyDefinition(at, p, name, p.WrittenKeys(w))...)
	}
	return problems
}

// checkPolicyDefinition checks the user's policy keys for a work queue.
func checkPolicyDefinition(at Path, p pipeline.Pipeline, workQueue string, definition topology.Arguments) []Problem {
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(definition)) {
		if why := unusableKey(key, definition[key], p.WorkQueues[workQueue], p.BrokerKeys(workQueue)); why != "" {
			problems = append(problems, problem(at, "Unusable policy key", "%q cannot be set here: %s.", key, why))
		}
	}
	return problems
}

// unusableKey says why a key cannot be set. Null removes a key and is always allowed. needed has the keys that make the
// broker retry.
func unusableKey(key string, value any, w pipeline.WorkQueue, needed topology.Arguments) string {
	if value == nil {
		return ""
	}
	_, isNeeded := needed[key]
	switch {
	case isNeeded || key == "dead-letter-exchange" || key == "dead-letter-strategy":
		return "the pipeline sets it itself"
	case key == "dead-letter-routing-key":
		return "the message's own routing key would be lost"
	case key == "expires":
		return "it deletes the queue with its messages after that time without use"
	case !topology.AlwaysApplicable(w.Type, key):
		return "a " + w.Type + " queue does not support it, on some releases at least, and the policy would not apply to the queue at all"
	case key == "overflow" && w.Strategy() == topology.AtLeastOnce && value != "reject-publish":
		return "at-least-once dead-lettering needs overflow = reject-publish; dead_letter_strategy = \"at-most-once\" allows other values"
	case bounded(topology.Arguments{key: value}) && w.Strategy() == topology.AtLeastOnce:
		return "at-least-once dead-lettering needs overflow = reject-publish, so a full queue would reject its publishers' messages; " +
			"write dead_letter_strategy = \"at-most-once\""
	}
	return ""
}

// WarnOfPipelineKeys finds policy keys and arguments of a pipeline that RabbitMQ does not know.
func WarnOfPipelineKeys(p pipeline.Pipeline) []Problem {
	problems := WarnOfPolicyKeys(p.PolicyDefinition, "policy_definition_json")
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		definition := p.WorkQueues[name].PolicyDefinition
		problems = append(problems, WarnOfPolicyKeys(definition, "work_queues", MapKey(name), "policy_definition_json")...)
		problems = append(problems, WarnOfArguments(p.WorkQueues[name].Arguments, "work_queues", MapKey(name), "arguments_json")...)
	}
	return problems
}

// WarnOfPolicyKeys finds keys that RabbitMQ does not know. It refuses a policy with such a key, unless a plugin knows
// it.
func WarnOfPolicyKeys(definition topology.Arguments, at ...any) []Problem {
	var unknown []Problem
	for _, key := range slices.Sorted(maps.Keys(definition)) {
		if definition[key] != nil && !slices.Contains(topology.PolicyKeys, key) {
			unknown = append(unknown, problem(at, "Unknown policy key",
				"RabbitMQ does not know the policy key %q%s. Apply fails unless a plugin of the broker knows it.",
				key, similar.Hint(key, slices.Values(topology.PolicyKeys))))
		}
	}
	return unknown
}

// WarnOfArguments finds arguments of a queue or an exchange that are similar to known ones. Brokers store and ignore unknown arguments.
func WarnOfArguments(arguments topology.Arguments, at ...any) []Problem {
	var misspelt []Problem
	for _, key := range slices.Sorted(maps.Keys(arguments)) {
		if meant := similar.To(key, slices.Values(topology.KnownArguments)); meant != "" {
			misspelt = append(misspelt, problem(at, fmt.Sprintf("Unknown argument %q", key),
				"RabbitMQ ignores an argument that it does not know. Did you mean %q?", meant))
		}
	}
	return misspelt
}
