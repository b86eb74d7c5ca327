package topology

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dlclark/regexp2"
)

// Keys that a queue type does not support: a policy with one of them does not apply to queues of that
// type at all (rabbit_queue_type:is_policy_applicable).
var (
	unsupportedKeys = map[string][]string{
		Quorum: {
			"max-priority", "queue-mode", "ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown",
			"ha-promote-on-failure", "queue-master-locator", "max-age", "stream-max-segment-size-bytes", "initial-cluster-size",
		},
		Classic: {"max-age", "stream-max-segment-size-bytes", "initial-cluster-size", "delivery-limit", "dead-letter-strategy"},
	}
	// sometimesUnsupportedKeys are unsupported by some of the versions.
	sometimesUnsupportedKeys = map[string][]string{
		Quorum:  {"single-active-consumer", "selector-fields", "selector-field-max-bytes"},
		Classic: {"queue-leader-locator", "max-in-memory-length", "max-in-memory-bytes", "target-group-size", "selector-fields", "selector-field-max-bytes"},
	}
)

// matchTimeout bounds the matching of one name: patterns with backtracking can take for ever.
const matchTimeout = 200 * time.Millisecond

// applicable tells whether a policy with this definition can apply to queues of the type.
func applicable(queueType string, definition Arguments) bool {
	for _, key := range unsupportedKeys[queueType] {
		if _, has := definition[key]; has {
			return false
		}
	}
	return true
}

// AppliesTo tells whether the policy matches a queue. A pattern that cannot be evaluated is an
// error: brokers use PCRE, of which some rarely used parts are not supported here.
func (p Policy) AppliesTo(queue, queueType string) (bool, error) {
	switch p.ApplyTo {
	case "all", "queues", queueType + "_queues":
	case "streams":
		if queueType != "stream" {
			return false, nil
		}
	default:
		return false, nil
	}
	if !applicable(queueType, p.Definition) {
		return false, nil
	}
	pattern, err := regexp2.Compile(p.Pattern, regexp2.None)
	if err != nil {
		return false, err
	}
	pattern.MatchTimeout = matchTimeout
	return pattern.MatchString(queue)
}

// NamedPolicy is a policy with its name.
type NamedPolicy struct {
	Name string
	Policy
}

// matching lists the policies that match a queue, the strongest first. Of equal priorities it is
// undefined which one the broker takes. Those whose pattern cannot be evaluated are in doubtful.
func matching(policies map[string]Policy, queue, queueType string) (found, doubtful []NamedPolicy) {
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		matches, err := policies[name].AppliesTo(queue, queueType)
		switch {
		case err != nil:
			doubtful = append(doubtful, NamedPolicy{name, policies[name]})
		case matches:
			found = append(found, NamedPolicy{name, policies[name]})
		}
	}
	slices.SortStableFunc(found, func(a, b NamedPolicy) int { return cmp.Compare(b.Priority, a.Priority) })
	return found, doubtful
}
