package topology

import (
	"cmp"
	"maps"
	"slices"
)

// releases are those from one on, until before another one. The zero value means all.
type releases struct{ from, before Version }

// include reports whether a version is among the releases. The zero version counts as the oldest one.
func (r releases) include(v Version) bool {
	return !v.BeforePatch(r.from.Major, r.from.Minor, r.from.Patch) && (r.before == Version{} || v.Before(r.before.Major, r.before.Minor))
}

var (
	before40, before42 = releases{before: Version{4, 0, 0}}, releases{before: Version{4, 2, 0}}
	since3127, since43 = releases{from: Version{3, 12, 7}}, releases{from: Version{4, 3, 0}}
)

// unsupportedKeys has the policy keys that queues of a type do not support, with the releases: unsupported_policies in
// rabbit_classic_queue, rabbit_quorum_queue and rabbit_stream_queue. A policy with one of them does not apply to queues of that type
// at all (rabbit_queue_type:is_policy_applicable). Some of the keys only a plugin accepts.
var unsupportedKeys = map[string]map[string]releases{
	Classic: {
		"dead-letter-strategy": {}, "delivery-limit": {}, "initial-cluster-size": {}, "max-age": {}, "stream-max-segment-size-bytes": {},
		"max-in-memory-bytes": since3127, "max-in-memory-length": since3127, "target-group-size": since3127,
		"queue-leader-locator": before40, "selector-field-max-bytes": since43, "selector-fields": since43,
	},
	Quorum: {
		"ha-mode": {}, "ha-params": {}, "ha-promote-on-failure": {}, "ha-promote-on-shutdown": {}, "ha-sync-mode": {},
		"initial-cluster-size": {}, "max-age": {}, "max-priority": {}, "queue-master-locator": {}, "queue-mode": {},
		"selector-field-max-bytes": since43, "selector-fields": since43, "single-active-consumer": before42, "stream-max-segment-size-bytes": {},
	},
	"stream": {
		"dead-letter-exchange": {}, "dead-letter-routing-key": {}, "dead-letter-strategy": {}, "delivery-limit": {}, "expires": {},
		"ha-mode": {}, "ha-params": {}, "ha-promote-on-failure": {}, "ha-promote-on-shutdown": {}, "ha-sync-mode": {},
		"max-in-memory-bytes": {}, "max-in-memory-length": {}, "max-length": {}, "max-priority": {}, "message-ttl": {}, "overflow": {},
		"queue-master-locator": {}, "queue-mode": {},
		"selector-field-max-bytes": since43, "selector-fields": since43, "single-active-consumer": before42, "target-group-size": since3127,
	},
}

// AlwaysApplicable reports whether a policy with this key can apply to queues of the type on every RabbitMQ version.
func AlwaysApplicable(queueType, key string) bool {
	_, is := unsupportedKeys[queueType][key]
	return !is
}

// Unsupported lists the keys that keep a policy from queues of the type on a broker of this version.
func Unsupported(queueType string, version Version, definition Arguments) []string {
	var found []string
	for key := range definition {
		if in, is := unsupportedKeys[queueType][key]; is && in.include(version) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}

// meant reports whether the policy's apply-to includes queues of the type.
func (p Policy) meant(queueType string) bool {
	switch p.ApplyTo {
	case "all", "queues", queueType + "_queues":
		return true
	case "streams":
		return queueType == "stream"
	}
	return false
}

// MeantForExchanges reports whether the policy's apply-to includes exchanges.
func (p Policy) MeantForExchanges() bool { return p.ApplyTo == "all" || p.ApplyTo == "exchanges" }

// NamedPolicy is a policy with its name.
type NamedPolicy struct {
	Name string
	Policy
}

// Matcher finds the policies that match a name.
type Matcher []compiledPolicy

// compiledPolicy has a nil pattern if the pattern cannot be evaluated.
type compiledPolicy struct {
	NamedPolicy
	pattern *brokerPattern
}

// NewMatcher compiles all patterns, and sorts the policies, strongest first.
func NewMatcher(policies map[string]Policy) Matcher {
	all := make(Matcher, 0, len(policies))
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		// A pattern that compiles here can still fail when it is matched.
		pattern, _ := compiled(policies[name].Pattern)
		all = append(all, compiledPolicy{NamedPolicy{name, policies[name]}, pattern})
	}
	slices.SortStableFunc(all, func(a, b compiledPolicy) int { return cmp.Compare(b.Priority, a.Priority) })
	return all
}

// Queue lists the policies that apply to a queue on a broker of this version, strongest first. If priorities are equal,
// it is undefined which policy the broker applies. Policies whose pattern cannot be evaluated are in doubtful. Brokers
// use PCRE, and some rare syntax is not supported here.
func (m Matcher) Queue(name, queueType string, version Version) (found, doubtful []NamedPolicy) {
	unsupported := func(p NamedPolicy) bool { return len(Unsupported(queueType, version, p.Definition)) > 0 }
	found, doubtful = m.matching(name, func(p Policy) bool { return p.meant(queueType) })
	return slices.DeleteFunc(found, unsupported), slices.DeleteFunc(doubtful, unsupported)
}

// Named lists the policies that match a name, whatever they apply to.
func (m Matcher) Named(name string) []NamedPolicy {
	found, _ := m.matching(name, func(Policy) bool { return true })
	return found
}

func (m Matcher) matching(name string, meant func(Policy) bool) (found, doubtful []NamedPolicy) {
	characters := bytewise(name)
	for _, p := range m {
		if !meant(p.Policy) {
			continue
		}
		if p.pattern == nil {
			doubtful = append(doubtful, p.NamedPolicy)
			continue
		}
		switch matches, err := p.pattern.matches(characters); {
		case err != nil:
			doubtful = append(doubtful, p.NamedPolicy)
		case matches:
			found = append(found, p.NamedPolicy)
		}
	}
	return found, doubtful
}

// Lookup finds the policies that apply to the objects of a vhost.
type Lookup struct {
	vhost              Vhost
	policies, operator Matcher
}

// NewLookup prepares a vhost for lookups.
func NewLookup(vhost Vhost) Lookup {
	return Lookup{vhost, NewMatcher(vhost.Policies), NewMatcher(vhost.OperatorPolicies)}
}

// Unreadable lists the policies whose patterns cannot be evaluated for every queue.
func (l Lookup) Unreadable() []NamedPolicy {
	var types []string // of the queues whose names are not ASCII
	for name, queue := range l.vhost.Queues {
		if !isASCII(name) && !slices.Contains(types, queue.Type) {
			types = append(types, queue.Type)
		}
	}
	var found []NamedPolicy
	for _, p := range slices.Concat(l.policies, l.operator) {
		if p.pattern == nil || p.pattern.onlyASCII && slices.ContainsFunc(types, p.meant) {
			found = append(found, p.NamedPolicy)
		}
	}
	return found
}

// Queue returns the settings of a queue. A policy whose pattern cannot be evaluated counts as not matching.
func (l Lookup) Queue(name string) Settings {
	queue := l.vhost.Queues[name]
	meant := func(p Policy) bool { return p.meant(queue.Type) || p.ApplyTo == "exchanges" }
	s := Settings{Queue: queue, version: l.vhost.Version}
	matching, _ := l.policies.matching(name, meant)
	for _, p := range matching {
		if p.ApplyTo != "exchanges" && len(Unsupported(queue.Type, s.version, p.Definition)) == 0 {
			s.Policies = append(s.Policies, p)
		} else {
			s.Inapplicable = append(s.Inapplicable, p)
		}
	}
	s.Operator, _ = l.operator.Queue(name, queue.Type, s.version)
	return s
}

// AlternateExchange returns the exchange that gets an exchange's unroutable messages.
func (l Lookup) AlternateExchange(name string) (alternate string, has bool) {
	if alternate, has = l.vhost.Exchanges[name].Arguments["alternate-exchange"].(string); has {
		return alternate, true
	}
	policy, has := l.AlternatePolicy(name)
	alternate, _ = policy.Definition["alternate-exchange"].(string)
	return alternate, has
}

// AlternatePolicy finds the policy that gives an exchange its alternate exchange.
func (l Lookup) AlternatePolicy(exchange string) (policy NamedPolicy, has bool) {
	policies, _ := l.policies.matching(exchange, Policy.MeantForExchanges)
	if len(policies) == 0 {
		return policy, false
	}
	_, has = policies[0].Definition["alternate-exchange"].(string)
	return policies[0], has
}
