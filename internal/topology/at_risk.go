package topology

import "slices"

// DeadLettersAtRisk lists the quorum queues that lose pending dead letters when an owner's objects change from live to
// wanted. A queue loses them if it is deleted or loses its policy, or if the policy loses its strategy, overflow or
// dead-letter exchange. The state on the broker decides, because an earlier change can have failed half-way. Deleting
// the owner's own queues needs a proof anyway, so only shared queues, which others publish to, count when they are
// deleted.
func DeadLettersAtRisk(live, wanted Topology, vhost Vhost, shared []string) []string {
	names := touched(live, wanted, vhost)
	before, then, after := lookups(names, live, wanted, vhost)
	var queues []string
	for _, name := range names {
		now, next := before.Queue(name), then.Queue(name)
		_, stays := after.Queues[name]
		if !now.AtLeastOnce() || !stays && !slices.Contains(shared, name) {
			continue
		}
		if !stays || !next.AtLeastOnce() || leadsToNothing(next, live, after) {
			queues = append(queues, name)
		}
	}
	return queues
}

// lookups tells which policies apply to the queues before and after a change of an owner's objects.
func lookups(queues []string, live, wanted Topology, vhost Vhost) (before, then Lookup, after Topology) {
	vhost.Policies, vhost.OperatorPolicies = matchingAny(vhost.Policies, queues), matchingAny(vhost.OperatorPolicies, queues)
	changed := vhost
	changed.Topology = Merge(vhost.Without(live), wanted)
	return NewLookup(vhost), NewLookup(changed), changed.Topology
}

// DroppedDeadLetters lists the queues that stay but lose their dead-letter exchange when an owner's objects change from
// live to wanted. Brokers drop rejected messages there. Others' policies do not count if they leave the queue at the same
// time: leaving has their names.
func DroppedDeadLetters(queues []string, live, wanted Topology, vhost Vhost, leaving map[string][]string) []string {
	before, then, after := lookups(queues, live, wanted, vhost)
	var dropped []string
	for _, name := range queues {
		now, next := before.Queue(name).without(leaving[name]), then.Queue(name).without(leaving[name])
		_, stays := after.Queues[name]
		_, had := now.Text("dead-letter-exchange")
		if _, has := next.Text("dead-letter-exchange"); stays && had && (!has || leadsToNothing(next, live, after)) {
			dropped = append(dropped, name)
		}
	}
	slices.Sort(dropped)
	return dropped
}

// WithoutDeadLetterExchange lists the existing queues that dead-letter to no existing exchange.
func WithoutDeadLetterExchange(queues []string, vhost Vhost) []string {
	vhost.Policies, vhost.OperatorPolicies = matchingAny(vhost.Policies, queues), matchingAny(vhost.OperatorPolicies, queues)
	lookup := NewLookup(vhost)
	var found []string
	for _, name := range queues {
		_, exists := vhost.Queues[name]
		exchange, has := lookup.Queue(name).Text("dead-letter-exchange")
		if has && exchange != "" {
			_, has = vhost.Exchanges[exchange]
		}
		if exists && !has {
			found = append(found, name)
		}
	}
	return found
}

// leadsToNothing reports whether a queue dead-letters to an exchange that the change deletes.
func leadsToNothing(s Settings, live, after Topology) bool {
	exchange, _ := s.Text("dead-letter-exchange")
	_, is := live.Exchanges[exchange]
	_, stays := after.Exchanges[exchange]
	return is && !stays
}

// matchingAny returns the policies that match any of the names. Compiling a pattern takes longer than all other steps.
func matchingAny(policies map[string]Policy, names []string) map[string]Policy {
	found := map[string]Policy{}
	matcher := NewMatcher(policies)
	for _, name := range names {
		for _, p := range matcher.Named(name) {
			found[p.Name] = p.Policy
		}
	}
	return found
}

// touched lists the quorum queues that a change can affect. A check of all queues against all policies of a vhost would
// be slow.
func touched(live, wanted Topology, vhost Vhost) []string {
	changes := Diff(wanted, live)
	replaced := changes.Delete.Policies
	for name := range changes.Update.Policies {
		replaced[name] = live.Policies[name]
	}
	policies := slices.Concat(NewMatcher(changes.Create.Policies), NewMatcher(changes.Update.Policies), NewMatcher(replaced))
	var queues []string
	for name, queue := range vhost.Queues {
		if queue.Type != Quorum {
			continue
		}
		exchange, _ := queue.Arguments["x-dead-letter-exchange"].(string)
		_, goes := changes.Delete.Exchanges[exchange]
		_, owned := live.Queues[name]
		if goes || owned || len(policies.Named(name)) > 0 {
			queues = append(queues, name)
		}
	}
	slices.Sort(queues)
	return queues
}
