package apply

import (
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

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
	if catchAll, exists := early[c.CatchAll]; exists {
		last[c.CatchAll] = catchAll
		delete(early, c.CatchAll)
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
	if exchange, exists := others[c.Entrance]; exists {
		entrance[c.Entrance] = exchange
		delete(others, c.Entrance)
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
	for name, live := range c.Live.Policies {
		form, guards := c.Guard[name]
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
