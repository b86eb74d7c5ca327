package apply

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// planCreate orders the creation of missing objects. The owner's exchange comes first and alone. If two runs create the
// same objects at the same time, only one of them gets past it. Policies come last, because messages come as soon as
// they exist. Without an exchange, the policy comes first and shows which run is the creator. Objects of an interrupted
// creation are already in Live.
func planCreate(c Change) []step {
	d := c.delta()
	missing := d.Create
	identity := c.Identity.Without(c.Live)
	attach := step{do: put, policies: c.writeOrder(topology.Merge(missing, d.Update).Policies)}
	first := []step{{do: rehearse, queues: missing.Queues, bindings: missing.Bindings}, attach}
	steps := slices.Concat(first, putSteps(missing), []step{c.attaching(missing.Bindings)})
	if len(c.Identity.Exchanges) > 0 {
		steps = slices.Concat(
			[]step{{do: put, exchanges: identity.Exchanges}, {do: put, policies: c.guardFirst(missing)}},
			putSteps(topology.Topology{Queues: identity.Queues, Bindings: identity.Bindings}),
			putSteps(missing.Without(identity)), []step{c.attaching(missing.Bindings), attach},
		)
	}
	ifFails := removeMade
	if len(c.Live.Exchanges) > 0 {
		ifFails = stop // if two runs continue it, neither knows what the other one made
	}
	for i := range steps {
		steps[i].ifFails = ifFails
	}
	check := step{do: proveNonePending, ifFails: refuse, checks: c.pendingChecks(c.Wanted)}
	return inOrder(append([]step{check}, steps...)...)
}

// putSteps create all objects except policies.
func putSteps(t topology.Topology) []step {
	return []step{{do: put, exchanges: t.Exchanges}, {do: put, queues: t.Queues}, {do: put, bindings: t.Bindings}}
}

// guardFirst returns the policies to write before the queues exist. They are needed if another owner's policy matches one
// of the queues, or cannot be evaluated: it could expire, truncate or delete the queue.
func (c Change) guardFirst(missing topology.Topology) []topology.NamedPolicy {
	_, own := c.split(missing.Queues)
	others := topology.NewMatcher(without(without(c.All.Policies, c.Live.Policies), c.Wanted.Policies))
	for name, queue := range own {
		if found, doubtful := others.Queue(name, queue.Type, c.All.Version); len(found)+len(doubtful) > 0 {
			return c.writeOrder(within(c.Guard, missing.Policies))
		}
	}
	return nil
}

// planUpdate orders a change. Steps that can be refused come first. Missing objects are created before others are
// deleted, except for policies that would overtake others. It returns an error if the change is impossible.
func planUpdate(c Change) ([]step, error) {
	noted := c.noted(c.Wanted.Meets) // an apply deletes only bindings of the owner's objects
	c.All.Bindings = slices.Concat(c.All.Bindings, noted)
	d := c.delta()
	if err := cmp.Or(c.requireReadable(only(c.All.Bindings, d.Replace.Meets)), c.requireLasting(d.Replace)); err != nil {
		return nil, err
	}
	goingShared, goingOwn := c.split(d.Delete.Queues)
	written := topology.Merge(d.Create, d.Update).Policies
	altered := c.toWake(written)
	maps.Copy(written, altered)
	early, late := c.overtaking(d.Delete.Policies)
	moved, unbound := d.unbound()
	ifNotMade := stop // a deleted queue comes back, and an old binding
	if len(moved)+len(goingShared) > 0 {
		ifNotMade = rollBack
	}
	ifNotEmpty := keep
	if c.Entrance != "" {
		ifNotEmpty = keepAll
	}
	bound := d.requireUnbound(d.going(), stop)
	replacement := c.replaceQueues(d.Replace.Queues)
	deleted := maps.Clone(d.Delete.Queues)
	maps.Copy(deleted, replacement.queues)
	return inOrder(
		bound,
		step{
			do: requireRights, ifFails: refuse, exchanges: d.Delete.Exchanges, queues: deleted,
			bindings: slices.Concat(d.Delete.Bindings, c.bindingsTo(d.Replace.Queues)),
		},
		step{do: try, ifFails: refuse, exchanges: d.Replace.Exchanges, queues: d.Replace.Queues},
		step{do: drain, ifFails: refuse, checks: d.refusingChecks()},
		step{do: proveNonePending, ifFails: refuse, checks: c.pendingChecks(c.Wanted)},
		bound,
		c.removeIfEmpty(goingShared, refuse),
		replacement,
		step{do: alter, policies: byName(altered)},
		step{do: put, ifFails: ifNotMade, exchanges: d.Create.Exchanges}, // notes about others can need them
		step{do: put, ifFails: ifNotMade, queues: d.Create.Queues},
		step{do: restore, bindings: noted},
		step{do: replaceExchanges, exchanges: d.Replace.Exchanges},
		step{do: unbind, bindings: moved},
		step{do: put, ifFails: ifNotMade, bindings: d.Create.Bindings},
		c.attaching(d.Create.Bindings),
		step{do: remove, policies: weakestFirst(early)},
		step{do: put, policies: c.writeOrder(written)},
		step{do: remove, policies: weakestFirst(late)},
		step{do: unbind, bindings: unbound},
		c.removeIfEmpty(goingOwn, ifNotEmpty),
		step{do: removeUnlessKept, exchanges: d.Delete.Exchanges},
	), nil
}

func (c Change) removeIfEmpty(queues map[string]topology.Queue, ifFails failure) step {
	return step{do: removeIfEmpty, ifFails: ifFails, queues: queues, bindings: c.bindingsTo(queues), checks: c.contentChecks(queues)}
}

func (c Change) replaceQueues(wanted map[string]topology.Queue) step {
	s := c.removeIfEmpty(within(c.All.Queues, wanted), refuse)
	s.do, s.recreated = replaceQueues, wanted
	if c.RestoresBindings {
		s.bindings = only(c.All.Bindings, func(b topology.Binding) bool { return b.Source != "" && leadsTo(b, wanted) })
	}
	return s
}

// toWake returns the policies to write again although they stay. A quorum queue tries again to send pending dead
// letters when its policy changes, or otherwise after three to six minutes. So these policies get other content before
// the route is restored, and the wanted content after it. If the apply is killed in between, the next plan shows the
// difference.
func (c Change) toWake(written map[string]topology.Policy) map[string]topology.Policy {
	if !c.RestoresDeadLetterRoute {
		return nil
	}
	return without(c.Wanted.Policies, written)
}

// planDrain comes before a removal. It gives queues that still receive messages time to drain.
func planDrain(c Change) []step {
	return inOrder(c.requireUnbound(c.Live, stop), step{do: drain, ifFails: refuse, checks: c.allChecks()})
}

// planRemove orders the removal of all objects. If a step fails, everything is restored. It proves twice that no
// messages would be lost. During the first proof, policies are still in place, and rejected or published messages go to
// a queue that is still bound. A refusal therefore loses nothing. Then the exchange that applications publish to is
// deleted, so that the broker refuses new messages. Only messages that are rejected during the second proof, after 22
// quiet seconds, have no target. Finally the quorum queues themselves are asked for a message. Shared queues are also
// asked before the policy is deleted, because asking can take a message over its delivery limit. Return bindings and
// the policies that guard the owner's queues stay until the end.
//
// ifUnanswered says how the removal continues if the broker does not answer after all queues are proved empty.
func planRemove(c Change, ifUnanswered failure) ([]step, error) {
	shared, own := c.split(c.Live.Queues)
	early := maps.Clone(own)
	delete(early, c.CatchAll)
	last := without(c.Live.Queues, early)
	entrance, others := divide(c.Live.Exchanges, func(name string, _ topology.Exchange) bool { return name == c.Entrance })
	if err := c.requireReadable(only(c.All.Bindings, topology.Topology{Exchanges: entrance}.Meets)); err != nil {
		return nil, err
	}
	guard, narrowed, attaching := c.dividePolicies()
	var unused step
	if c.Unused != nil {
		unused = step{do: requireUnused, ifFails: rollBack, exchanges: c.Live.Exchanges}
	}
	return inOrder(
		c.requireUnbound(c.Live, stop),
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
		c.requireUnbound(c.Live, rollBack),
		// Shared queues are deleted first. If a classic queue refuses, all objects are still there.
		step{do: remove, ifFails: ifUnanswered, queues: shared},
		step{do: remove, ifFails: ifUnanswered, queues: own},
		step{do: remove, ifFails: ifUnanswered, policies: weakestFirst(guard)},
		step{do: unbind, ifFails: rollBack, bindings: bindingsOfOthers(c.Live)},
		step{do: remove, ifFails: ifUnanswered, exchanges: others},
	), nil
}

func (c Change) requireUnbound(going topology.Topology, ifFails failure) step {
	return step{do: requireUnbound, ifFails: ifFails, exchanges: going.Exchanges, queues: going.Queues}
}

// planForce deletes everything, including messages.
func planForce(c Change) []step {
	filled := maps.Clone(c.Live.Queues)
	for name, queue := range filled {
		queue.Type = "" // otherwise the broker would refuse to delete a classic queue with messages
		filled[name] = queue
	}
	return inOrder(
		c.requireUnbound(c.Live, stop),
		step{do: requireRights, exchanges: c.Live.Exchanges, queues: c.Live.Queues, bindings: c.Live.Bindings},
		step{do: remove, policies: weakestFirst(c.Live.Policies)},
		step{do: unbind, bindings: c.Live.Bindings},
		step{do: remove, queues: filled},
		step{do: remove, exchanges: c.Live.Exchanges},
	)
}

// allChecks returns the checks of a removal. Deleted queues must be empty, and no dead letters can be pending where
// they would be lost.
func (c Change) allChecks() emptinessChecks {
	checks := c.pendingChecks(topology.Topology{})
	maps.Copy(checks, checksOf(exposed, c.Exposed()...))
	maps.Copy(checks, c.contentChecks(c.Live.Queues))
	return checks
}

// dividePolicies divides the owner's policies into those that guard its queues until the queues are deleted, and all
// others. If a guarding policy covers other queues now, it must first be narrowed.
func (c Change) dividePolicies() (guard, narrowed, attaching map[string]topology.Policy) {
	guard, narrowed, attaching = within(c.Live.Policies, c.Guard), map[string]topology.Policy{}, without(c.Live.Policies, c.Guard)
	for name, live := range guard {
		if form := c.Guard[name]; live.Pattern != form.Pattern {
			live.Pattern = form.Pattern
			guard[name], narrowed[name] = live, live
		}
	}
	return guard, narrowed, attaching
}
