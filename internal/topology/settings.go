package topology

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// UnreachableLength is a maximum length, in messages, that no queue reaches.
const UnreachableLength = int64(1_000_000_000)

// UnreachableDeliveryLimit is a delivery limit that no message reaches because somebody looks at it. It means the same
// on every version. No limit would mean 20 from RabbitMQ 4.0 on, and before 4.0 a limit of -1 is exceeded at once.
const UnreachableDeliveryLimit = int64(1_000_000)

// LookSize is how many messages each look takes from the front of a quorum queue with a TTL, in every release. If a look takes
// fewer than an earlier one, the first messages move behind others.
const LookSize = 5000

// Settings are a queue's arguments, policy and operator policy. Its methods merge each setting as the broker does.
type Settings struct {
	Queue
	// Policies and Operator are the policies that can apply, strongest first. Only the first one applies.
	Policies, Operator []NamedPolicy
	// Inapplicable are policies that match the queue but are for exchanges, or have a key that its type does not support.
	Inapplicable []NamedPolicy

	version Version
}

// Text returns a string setting: dead-letter-exchange, dead-letter-routing-key, dead-letter-strategy, overflow or
// delayed-retry-type. An argument takes precedence over a policy. The exceptions are overflow and delayed-retry-type on
// quorum queues (rabbit_quorum_queue:gather_policy_config).
func (s Settings) Text(key string) (value string, has bool) {
	argument, policy := s.Arguments["x-"+key], cmp.Or(first(s.Operator, key), first(s.Policies, key))
	found := cmp.Or(argument, policy)
	if (key == "overflow" || key == "delayed-retry-type") && s.Type == Quorum {
		found = cmp.Or(policy, argument)
	}
	value, has = found.(string)
	return value, has
}

// Number returns a number setting. If there are several values, the lowest one counts. From 4.0 on, a negative delivery
// limit means no limit, so any other value takes precedence.
func (s Settings) Number(key string) (value int64, has bool) {
	argument, policy := s.Arguments["x-"+key], first(s.Policies, key)
	if key == "expires" && s.Type == Quorum && s.version.Before(4, 0) && policy != nil {
		argument = nil
	}
	for _, each := range []any{argument, policy, first(s.Operator, key)} {
		number, isNumber := each.(int64)
		switch {
		case !isNumber:
		case !has:
			value, has = number, true
		case key == "delivery-limit" && min(value, number) < 0 && !s.version.Before(4, 0):
			value = max(value, number)
		default:
			value = min(value, number)
		}
	}
	return value, has
}

// Has reports whether an argument or a policy makes the setting.
func (s Settings) Has(key string) bool {
	return cmp.Or(s.Arguments["x-"+key], first(s.Policies, key), first(s.Operator, key)) != nil
}

// Values returns all settings without the prefix of arguments, each merged.
func (s Settings) Values() Arguments {
	all := Arguments{}
	for argument, value := range s.Arguments {
		all[strings.TrimPrefix(argument, "x-")] = value
	}
	for _, policies := range [][]NamedPolicy{s.Policies, s.Operator} {
		if len(policies) > 0 {
			maps.Copy(all, policies[0].Definition)
		}
	}
	for key, value := range all {
		all[key] = cmp.Or(s.InForce(key), value)
	}
	return all
}

// InForce returns a string or number setting, or nil.
func (s Settings) InForce(key string) any {
	if text, is := s.Text(key); is {
		return text
	}
	if number, is := s.Number(key); is {
		return number
	}
	return nil
}

// Limits are the keys whose smaller value makes the broker drop messages, or delete queues, at once. A larger one is harmless.
var Limits = []string{"expires", "max-length", "max-length-bytes", "message-ttl"}

// Tighter reports whether a limit is added or gets smaller.
func Tighter(key string, before, after Arguments) bool {
	was, limited := before[key].(int64)
	limit, isSet := after[key].(int64)
	return isSet && (!limited || was > limit)
}

// SetBy reports whether one of the policies applies.
func (s Settings) SetBy(policies map[string]Policy) bool {
	if len(s.Policies) == 0 {
		return false
	}
	_, is := policies[s.Policies[0].Name]
	return is
}

// Alternatives returns the settings with each policy and operator policy that the broker can choose: if several have the highest
// priority, it is undefined which one applies.
func (s Settings) Alternatives() []Settings {
	var all []Settings
	for _, policies := range strongest(s.Policies) {
		for _, operator := range strongest(s.Operator) {
			one := s
			one.Policies, one.Operator = policies, operator
			all = append(all, one)
		}
	}
	return all
}

// strongest returns each policy of the highest priority, or one empty list.
func strongest(sorted []NamedPolicy) [][]NamedPolicy {
	all := [][]NamedPolicy{sorted[:min(1, len(sorted))]}
	for i := 1; i < len(sorted) && sorted[i].Priority == sorted[0].Priority; i++ {
		all = append(all, sorted[i:i+1])
	}
	return all
}

// without leaves out some policies.
func (s Settings) without(policies []string) Settings {
	s.Policies = slices.DeleteFunc(slices.Clone(s.Policies), func(p NamedPolicy) bool { return slices.Contains(policies, p.Name) })
	return s
}

// PolicyOf returns the name of the policy that makes a string setting. It returns "" if an argument makes it or it is
// not set.
func (s Settings) PolicyOf(key string) string {
	if s.Arguments["x-"+key] != nil || first(s.Policies, key) == nil {
		return ""
	}
	return s.Policies[0].Name
}

// Limited reports whether the queue has a length limit that it can reach.
func (s Settings) Limited() bool {
	messages, limited := s.Number("max-length")
	_, limitedBytes := s.Number("max-length-bytes")
	return limited && messages < UnreachableLength || limitedBytes
}

// AtLeastOnce reports whether the queue keeps its dead letters until their targets have confirmed them. The strategy
// alone does not ensure that (rabbit_quorum_queue:dead_letter_handler).
func (s Settings) AtLeastOnce() bool {
	_, deadLetters := s.Text("dead-letter-exchange")
	strategy, _ := s.Text("dead-letter-strategy")
	overflow, _ := s.Text("overflow")
	return s.Type == Quorum && deadLetters && strategy == AtLeastOnce && overflow == "reject-publish"
}

// DeliveryLimit returns how often a message can be returned. Explicit means that a setting chose the number.
func (s Settings) DeliveryLimit() (limit int64, explicit, limited bool) {
	if s.Type != Quorum {
		return 0, false, false
	}
	if limit, explicit = s.Number("delivery-limit"); explicit {
		return limit, true, limit >= 0
	}
	return defaultDeliveryLimit, false, !s.version.Before(4, 0)
}

// defaultDeliveryLimit is the delivery limit of quorum queues from 4.0 on.
const defaultDeliveryLimit = 20

func first(policies []NamedPolicy, key string) any {
	if len(policies) == 0 {
		return nil
	}
	return policies[0].Definition[key]
}

// PolicyKeys are the policy keys of all supported versions, with the federation plugin. Third-party plugins can know more.
var PolicyKeys = []string{
	"alternate-exchange", "consumer-disconnected-timeout", "consumer-timeout", "dead-letter-exchange", "dead-letter-routing-key",
	"dead-letter-strategy", "delayed-retry-max", "delayed-retry-min", "delayed-retry-type", "delivery-limit", "expires",
	"federation-upstream", "federation-upstream-pattern", "federation-upstream-set", "ha-mode", "ha-params", "ha-promote-on-failure",
	"ha-promote-on-shutdown", "ha-sync-batch-size", "ha-sync-mode", "initial-cluster-size", "max-age", "max-in-memory-bytes",
	"max-in-memory-length", "max-length", "max-length-bytes", "message-ttl", "overflow", "queue-leader-locator", "queue-master-locator",
	"queue-mode", "queue-version", "stream-filter-size-bytes", "stream-max-segment-size-bytes", "target-group-size",
}

// KnownArguments are the arguments of queues and exchanges of all supported versions, with the plugins that come along.
var KnownArguments = func() []string {
	known := []string{
		"alternate-exchange", "hash-header", "hash-property", "x-delayed-type", "x-max-priority", "x-queue-type", "x-quorum-initial-group-size",
		"x-quorum-target-group-size", "x-recent-history-length", "x-single-active-consumer",
	}
	for _, key := range PolicyKeys[1:] { // the first one is an argument as it is
		known = append(known, "x-"+key)
	}
	return known
}()

// DecodedArguments converts the result of encoding/json with UseNumber to arguments. Whole numbers become int64, and
// others float64. An empty map becomes nil.
func DecodedArguments(decoded map[string]any) Arguments {
	if len(decoded) == 0 {
		return nil
	}
	values := make(Arguments, len(decoded))
	for key, value := range decoded {
		values[key] = decodedValue(value)
	}
	return values
}

func decodedValue(decoded any) any {
	switch value := decoded.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		float, err := value.Float64()
		if err != nil {
			return value.String()
		}
		// A broker stores 1 for 1.0.
		if whole := int64(float); float64(whole) == float {
			return whole
		}
		return float
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = decodedValue(element)
		}
		return list
	case map[string]any:
		table := make(map[string]any, len(value))
		for key, element := range value {
			table[key] = decodedValue(element)
		}
		return table
	default:
		return value
	}
}

// Key returns a text that is the same for equal arguments, because encoding/json sorts keys.
func (a Arguments) Key() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic("arguments hold JSON values only: " + err.Error())
	}
	return string(text)
}
