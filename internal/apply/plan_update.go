package apply

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

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
	if c.Together {
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
