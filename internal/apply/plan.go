package apply

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// planCreate orders the creation of what is missing. What identifies the owner comes first, its exchange
// alone: of two that create the same objects at the same time, only one gets past it, instead of each taking
// a part. Policies come last, since messages come as soon as they are there. Where there is no exchange, a
// policy has to tell who is the creator. What an interrupted creation left is live already.
func planCreate(c Change) []step {
	changes := topology.Diff(c.Wanted, c.Live)
	missing := changes.Create
	identity := topology.Diff(c.Identity(), c.Live).Create
	attach := step{do: put, policies: c.writeOrder(topology.Merge(missing, changes.Update).Policies)}
	steps := slices.Concat([]step{attach}, putAll(missing), []step{c.attaching(missing.Bindings)})
	if len(c.Identity().Exchanges) > 0 {
		steps = slices.Concat(
			[]step{{do: put, exchanges: identity.Exchanges}, {do: put, policies: c.guardFirst(missing)}},
			putAll(topology.Topology{Queues: identity.Queues, Bindings: identity.Bindings}),
			putAll(missing.Without(identity)), []step{c.attaching(missing.Bindings), attach},
		)
	}
	ifFails := removeMade
	if len(c.Live.Exchanges) > 0 {
		ifFails = stop // of two that go on after the same interruption, neither knows what the other one made
	}
	check := step{do: proveNonePending, ifFails: refuse, checks: c.pendingChecks(c.Wanted)}
	return inOrder(append([]step{check}, allFail(ifFails, steps)...)...)
}

// putAll creates objects but for the policies.
func putAll(t topology.Topology) []step {
	return []step{{do: put, exchanges: t.Exchanges}, {do: put, queues: t.Queues}, {do: put, bindings: t.Bindings}}
}

// guardFirst are the policies to write before the queues exist, if policies of others match one of
// the queues: those would expire or truncate it, or delete it, until the owner's are there.
func (c Change) guardFirst(missing topology.Topology) []topology.NamedPolicy {
	_, own := c.split(missing.Queues)
	if !c.coveredByOthers(own) {
		return nil
	}
	guard := c.Guard()
	maps.DeleteFunc(guard, func(name string, _ topology.Policy) bool { _, isMissing := missing.Policies[name]; return !isMissing })
	return c.writeOrder(guard)
}

// coveredByOthers reports whether a policy that is not the owner's matches one of the queues, or cannot be evaluated.
func (c Change) coveredByOthers(queues map[string]topology.Queue) bool {
	others := maps.Clone(c.All.Policies)
	for _, own := range []map[string]topology.Policy{c.Live.Policies, c.Wanted.Policies} {
		maps.DeleteFunc(others, func(name string, _ topology.Policy) bool { _, is := own[name]; return is })
	}
	policies := topology.NewMatcher(others)
	for name, queue := range queues {
		if found, doubtful := policies.Queue(name, queue.Type); len(found)+len(doubtful) > 0 {
			return true
		}
	}
	return false
}

// planUpdate orders a change. Whatever may be refused comes first, and what is missing is created
// before anything is deleted, apart from policies that would overtake others. It fails if the change
// cannot be made at all.
func planUpdate(c Change) ([]step, error) {
	changes := topology.Diff(c.Wanted, c.Live)
	goingShared, goingOwn := c.split(changes.Delete.Queues)
	noted := c.noted()
	c.All.Bindings = slices.Concat(c.All.Bindings, noted)
	if err := c.requireReadableOf(changes.Replace.Exchanges); err != nil {
		return nil, err
	}
	if err := c.requireLasting(changes.Replace.Exchanges); err != nil {
		return nil, err
	}
	written := topology.Merge(changes.Create, changes.Update).Policies
	altered := c.toWake(written)
	maps.Copy(written, altered)
	early, late := c.overtaking(changes.Delete.Policies)
	unbound := bindingsOfOthers(changes.Delete)
	moved := c.moved(unbound, changes.Create.Bindings)
	unbound = slices.DeleteFunc(unbound, func(b topology.Binding) bool { return slices.ContainsFunc(moved, b.Equal) })
	going := c.going()
	bound := step{do: requireUnbound, exchanges: going.Exchanges, queues: going.Queues}
	return inOrder(slices.Concat(
		[]step{
			bound,
			{do: drain, ifFails: refuse, checks: c.refusingChecks()},
			{do: proveNonePending, ifFails: refuse, checks: c.pendingChecks(c.Wanted)},
			bound,
			c.removeIfEmpty(goingShared, refuse),
			c.replaceQueues(changes.Replace.Queues),
			{do: alter, policies: byName(altered)},
			{do: put, exchanges: changes.Create.Exchanges}, // notes about others may need them
			{do: put, queues: changes.Create.Queues},
			{do: restore, bindings: noted},
		},
		c.replaceExchanges(changes.Replace.Exchanges),
		[]step{
			{do: unbind, bindings: moved},
			{do: put, bindings: changes.Create.Bindings},
			c.attaching(changes.Create.Bindings),
			{do: remove, policies: weakestFirst(early)},
			{do: put, policies: c.writeOrder(written)},
			{do: remove, policies: weakestFirst(late)},
			{do: unbind, bindings: unbound},
			c.removeIfEmpty(goingOwn, c.ifNotEmpty()),
			{do: removeUnlessKept, exchanges: changes.Delete.Exchanges},
		},
	)...), nil
}

// ifNotEmpty is what becomes of the owner's own queues that go if one of them is not empty.
func (c Change) ifNotEmpty() failure {
	if c.Entrance() != "" {
		return keepAll
	}
	return keep
}

func (c Change) removeIfEmpty(queues map[string]topology.Queue, ifFails failure) step {
	return step{do: removeIfEmpty, ifFails: ifFails, queues: queues, bindings: c.bindingsTo(queues), checks: c.contentChecks(queues)}
}

func (c Change) replaceQueues(wanted map[string]topology.Queue) step {
	return step{do: replace, ifFails: refuse, queues: wanted, bindings: c.bindingsTo(wanted), checks: c.contentChecks(wanted)}
}

func (c Change) replaceExchanges(wanted map[string]topology.Exchange) []step {
	var steps []step
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		exchange := map[string]topology.Exchange{name: wanted[name]}
		steps = append(steps, step{do: replace, exchanges: exchange, bindings: c.bindingsOf(name)})
	}
	return steps
}

// toWake are the policies to write over again although they stay. Quorum queues try again to send pending dead letters that had
// no way to go when their policy changes, and otherwise only after three to six minutes. So these get other content before the
// way is restored, and the wanted one after it: if the apply is killed in between, the next plan shows the difference.
func (c Change) toWake(written map[string]topology.Policy) map[string]topology.Policy {
	stay := map[string]topology.Policy{}
	if c.RestoresDeadLetterRoute {
		maps.Copy(stay, c.Wanted.Policies)
	}
	maps.DeleteFunc(stay, func(name string, _ topology.Policy) bool { _, changes := written[name]; return changes })
	return stay
}

// planDrain is what comes before a removal: queues that still receive messages get time to drain, unless others publish to them.
func planDrain(c Change) []step {
	return inOrder(c.requireUnbound(stop), step{do: drain, ifFails: refuse, checks: c.allChecks()})
}

// planRemove orders the removal of all objects, or of none: whatever fails, everything is put back. It proves twice
// that no messages would be lost. The first time policies are still in place, and what consumers reject or others
// publish meanwhile ends in a queue that is still bound, so that a refusal loses nothing. Then the exchange goes that
// applications publish to: the broker refuses what they publish. Only what begins to be rejected during the second
// proof, after 22 quiet seconds, has nowhere to go. Then the queues are asked themselves; shared ones are asked before,
// too, since a message that this takes over their delivery limit needs the policy. The bindings that bring messages back
// to their work queues stay throughout, and so do the policies that guard the owner's queues.
//
// IfUnanswered is what becomes of it if the broker does not answer once all queues are proved to be
// empty.
func planRemove(c Change, ifUnanswered failure) ([]step, error) {
	shared, early := c.split(c.Live.Queues)
	last := maps.Clone(shared)
	if catchAll, exists := early[c.CatchAll()]; exists {
		last[c.CatchAll()] = catchAll
		delete(early, c.CatchAll())
	}
	entrance, others := c.splitEntrance()
	if err := c.requireReadableOf(entrance); err != nil {
		return nil, err
	}
	guard, narrowed, attaching := c.dividePolicies()
	var unused step
	if c.Unused != nil {
		unused = step{do: requireUnused, ifFails: rollBack, exchanges: c.Live.Exchanges}
	}
	deletion := func(s step) step { s.do, s.ifFails = remove, ifUnanswered; return s }
	return inOrder(
		c.requireUnbound(stop),
		step{do: unbind, ifFails: rollBack, bindings: c.bindingsTo(early)},
		step{do: prove, ifFails: rollBack, checks: c.allChecks()},
		step{do: ask, ifFails: rollBack, queues: shared},
		unused,
		step{do: remove, ifFails: rollBack, policies: weakestFirst(attaching)},
		step{do: put, ifFails: rollBack, policies: weakestFirst(narrowed)},
		step{do: shut, ifFails: rollBack, exchanges: entrance},
		step{do: unbind, ifFails: rollBack, bindings: c.bindingsTo(last)},
		step{do: prove, ifFails: rollBack, checks: c.contentChecks(c.Live.Queues)},
		step{do: ask, ifFails: rollBack, queues: c.Live.Queues},
		unused,
		c.requireUnbound(rollBack),
		// Shared queues go first: a classic one may refuse, and nothing is gone by then.
		deletion(step{queues: shared}),
		deletion(step{queues: without(c.Live.Queues, shared)}),
		deletion(step{policies: weakestFirst(guard)}),
		step{do: unbind, ifFails: rollBack, bindings: bindingsOfOthers(c.Live)},
		deletion(step{exchanges: others}),
	), nil
}

func (c Change) requireUnbound(ifFails failure) step {
	return step{do: requireUnbound, ifFails: ifFails, exchanges: c.Live.Exchanges, queues: c.Live.Queues}
}

// splitEntrance divides the owner's exchanges into the one that applications publish to and all others.
func (c Change) splitEntrance() (entrance, others map[string]topology.Exchange) {
	entrance, others = map[string]topology.Exchange{}, maps.Clone(c.Live.Exchanges)
	if exchange, exists := others[c.Entrance()]; exists {
		entrance[c.Entrance()] = exchange
		delete(others, c.Entrance())
	}
	return entrance, others
}

// planForce deletes everything, whatever is in it.
func planForce(c Change) []step {
	return inOrder(
		c.requireUnbound(stop),
		step{do: remove, policies: weakestFirst(c.Live.Policies)},
		step{do: unbind, bindings: c.Live.Bindings},
		step{do: removeForced, queues: c.Live.Queues},
		step{do: remove, exchanges: c.Live.Exchanges},
	)
}

// allChecks are those of a removal: queues that go have to be empty, and no dead letters may be pending
// where they would be lost.
func (c Change) allChecks() emptinessChecks {
	checks := c.pendingChecks(topology.Topology{})
	maps.Copy(checks, c.contentChecks(c.Live.Queues))
	return checks
}

// dividePolicies divides the owner's policies into those that guard its queues until these are gone, in
// the form in which they do, and all others. Those of the guard that cover other queues now have to be
// narrowed.
func (c Change) dividePolicies() (guard, narrowed, attaching map[string]topology.Policy) {
	guard, narrowed, attaching = map[string]topology.Policy{}, map[string]topology.Policy{}, map[string]topology.Policy{}
	forms := c.Guard()
	for name, live := range c.Live.Policies {
		form, guards := forms[name]
		if !guards {
			attaching[name] = live
			continue
		}
		guard[name] = live
		if live.Pattern != form.Pattern {
			live.Pattern = form.Pattern
			guard[name], narrowed[name] = live, live
		}
	}
	return guard, narrowed, attaching
}
