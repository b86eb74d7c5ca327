package topology

import (
	"cmp"
	"maps"
	"slices"
)

// Lookup finds the policies that apply to the objects of a vhost. It reads each pattern once: a
// whole vhost is a large number of policies times a large number of queues.
type Lookup struct {
	vhost              Vhost
	policies, operator []compiledPolicy
}

// compiledPolicy has no pattern if it cannot be evaluated.
type compiledPolicy struct {
	NamedPolicy
	pattern *brokerPattern
}

// NewLookup prepares a vhost for questions.
func NewLookup(vhost Vhost) Lookup {
	return Lookup{vhost, compilePolicies(vhost.Policies), compilePolicies(vhost.OperatorPolicies)}
}

// compilePolicies reads all patterns, and sorts the policies, the strongest first.
func compilePolicies(policies map[string]Policy) []compiledPolicy {
	all := make([]compiledPolicy, 0, len(policies))
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		// A pattern that is no error here may still be one when it is matched.
		pattern, _ := compiled(policies[name].Pattern)
		all = append(all, compiledPolicy{NamedPolicy{name, policies[name]}, pattern})
	}
	slices.SortStableFunc(all, func(a, b compiledPolicy) int { return cmp.Compare(b.Priority, a.Priority) })
	return all
}

// Unreadable lists the policies whose patterns cannot be evaluated, or not for each queue.
func (l Lookup) Unreadable() []NamedPolicy {
	var found []NamedPolicy
	types := l.typesOfForeignNames()
	for _, p := range slices.Concat(l.policies, l.operator) {
		if p.pattern == nil || p.pattern.onlyASCII && slices.ContainsFunc(types, p.meant) {
			found = append(found, p.NamedPolicy)
		}
	}
	return found
}

// typesOfForeignNames are the types of the queues whose names are not ASCII.
func (l Lookup) typesOfForeignNames() []string {
	var types []string
	for name, queue := range l.vhost.Queues {
		if !isASCII(name) && !slices.Contains(types, queue.Type) {
			types = append(types, queue.Type)
		}
	}
	return types
}

// Queue returns how a queue of the vhost behaves. Policies whose patterns cannot be evaluated count
// as not matching.
func (l Lookup) Queue(name string) Settings {
	queue := l.vhost.Queues[name]
	meant := func(p Policy) bool { return p.meant(queue.Type) }
	s := Settings{Queue: queue, version: l.vhost.Version}
	for _, p := range matchingCompiled(l.policies, name, meant) {
		if applicable(queue.Type, p.Definition) {
			s.Policies = append(s.Policies, p)
		} else {
			s.Inapplicable = append(s.Inapplicable, p)
		}
	}
	for _, p := range matchingCompiled(l.operator, name, meant) {
		if applicable(queue.Type, p.Definition) {
			s.Operator = append(s.Operator, p)
		}
	}
	return s
}

// AlternateExchange returns where an exchange of the vhost sends what it cannot route.
func (l Lookup) AlternateExchange(name string) (alternate string, has bool) {
	if alternate, has = l.vhost.Exchanges[name].Arguments["alternate-exchange"].(string); has {
		return alternate, true
	}
	policy, has := l.AlternatePolicy(name)
	alternate, _ = policy.Definition["alternate-exchange"].(string)
	return alternate, has
}

// AlternatePolicy finds the policy that gives an exchange an alternate one.
func (l Lookup) AlternatePolicy(exchange string) (policy NamedPolicy, has bool) {
	policies := matchingCompiled(l.policies, exchange, Policy.MeantForExchanges)
	if len(policies) == 0 {
		return policy, false
	}
	_, has = policies[0].Definition["alternate-exchange"].(string)
	return policies[0], has
}

func matchingCompiled(policies []compiledPolicy, name string, meant func(Policy) bool) []NamedPolicy {
	var found []NamedPolicy
	for _, p := range policies {
		if p.pattern == nil || !meant(p.Policy) {
			continue
		}
		if matches, err := p.pattern.matches(name); err == nil && matches {
			found = append(found, p.NamedPolicy)
		}
	}
	return found
}
