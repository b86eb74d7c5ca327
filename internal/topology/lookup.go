package topology

import "slices"

// Lookup finds the policies that apply to the objects of a vhost.
type Lookup struct {
	vhost              Vhost
	policies, operator Matcher
}

// NewLookup prepares a vhost for questions.
func NewLookup(vhost Vhost) Lookup {
	return Lookup{vhost, NewMatcher(vhost.Policies), NewMatcher(vhost.OperatorPolicies)}
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
	matching, _ := l.policies.matching(name, meant)
	for _, p := range matching {
		if applicable(queue.Type, p.Definition) {
			s.Policies = append(s.Policies, p)
		} else {
			s.Inapplicable = append(s.Inapplicable, p)
		}
	}
	s.Operator, _ = l.operator.Queue(name, queue.Type)
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
	policies, _ := l.policies.Exchange(exchange)
	if len(policies) == 0 {
		return policy, false
	}
	_, has = policies[0].Definition["alternate-exchange"].(string)
	return policies[0], has
}
