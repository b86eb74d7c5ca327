package topology

import (
	"cmp"
	"maps"
	"slices"
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
		Quorum: {"single-active-consumer", "selector-fields", "selector-field-max-bytes"},
		Classic: {
			"queue-leader-locator", "max-in-memory-length", "max-in-memory-bytes", "target-group-size",
			"selector-fields", "selector-field-max-bytes",
		},
	}
)

// applicable reports whether a policy with this definition can apply to queues of the type.
func applicable(queueType string, definition Arguments) bool {
	return len(Unsupported(queueType, definition)) == 0
}

// AlwaysApplicable reports whether a policy with this definition can apply to queues of the type on every
// version.
func AlwaysApplicable(queueType string, definition Arguments) bool {
	return applicable(queueType, definition) && !slices.ContainsFunc(sometimesUnsupportedKeys[queueType], func(key string) bool {
		_, has := definition[key]
		return has
	})
}

// Unsupported lists the keys because of which a policy does not apply to queues of the type at all.
func Unsupported(queueType string, definition Arguments) []string {
	var found []string
	for _, key := range unsupportedKeys[queueType] {
		if _, has := definition[key]; has {
			found = append(found, key)
		}
	}
	return found
}

// AppliesTo reports whether the policy matches a queue. A pattern that cannot be evaluated is an
// error: brokers use PCRE, of which some rarely used parts are not supported here.
func (p Policy) AppliesTo(queue, queueType string) (bool, error) {
	if !p.meant(queueType) || !applicable(queueType, p.Definition) {
		return false, nil
	}
	return p.matches(queue)
}

// matches reports whether the pattern matches a name.
func (p Policy) matches(name string) (bool, error) {
	pattern, err := compiled(p.Pattern)
	if err != nil {
		return false, err
	}
	return pattern.matches(name)
}

// MayApply reports whether one of the policies matches one of the queues. A pattern that cannot be evaluated
// may match.
func MayApply(policies map[string]Policy, queues map[string]Queue) bool {
	for _, policy := range policies {
		for name, queue := range queues {
			if matches, err := policy.AppliesTo(name, queue.Type); matches || err != nil {
				return true
			}
		}
	}
	return false
}

// MayApplyToExchange reports whether one of the policies matches an exchange. A pattern that cannot be evaluated may
// match.
func MayApplyToExchange(policies map[string]Policy, exchange string) bool {
	for _, policy := range policies {
		if !policy.MeantForExchanges() {
			continue
		}
		if matches, err := policy.matches(exchange); matches || err != nil {
			return true
		}
	}
	return false
}

// meant reports whether the policy is for queues of the type.
func (p Policy) meant(queueType string) bool {
	switch p.ApplyTo {
	case "all", "queues", queueType + "_queues":
		return true
	case "streams":
		return queueType == "stream"
	}
	return false
}

// MeantForExchanges reports whether the policy is for exchanges, too.
func (p Policy) MeantForExchanges() bool { return p.ApplyTo == "all" || p.ApplyTo == "exchanges" }

// NamedPolicy is a policy with its name.
type NamedPolicy struct {
	Name string
	Policy
}

// Matching lists the policies that match a queue, the strongest first. Of equal priorities it is
// undefined which one the broker takes. Those whose pattern cannot be evaluated are in doubtful.
func Matching(policies map[string]Policy, queue, queueType string) (found, doubtful []NamedPolicy) {
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
