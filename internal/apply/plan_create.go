package apply

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// planCreate orders the creation of what is missing. Policies come last, since messages come as soon
// as they are there. Where there is no exchange, of which only one of two can be the creator, a policy
// has to tell who is.
func planCreate(c Change) []step {
	missing := topology.Diff(c.Wanted, c.Live).Create
	attach := step{do: put, policies: c.writeOrder(missing.Policies)}
	steps := []step{attach}
	if len(missing.Exchanges) > 0 {
		first, rest := putFirst(missing), putRest(missing)
		steps = slices.Concat(first, []step{{do: put, policies: c.guardFirst(missing)}}, rest, []step{attach})
	} else {
		steps = append(steps, putRest(missing)...)
	}
	check := step{do: proveNonePending, ifFails: refuse, checks: c.pendingChecks(c.Wanted)}
	return inOrder(append([]step{check}, allFail(removeMade, steps)...)...)
}

// putFirst creates the first exchange alone: of two that create the same objects at the same time, only
// one gets past it, instead of each taking a part.
func putFirst(t topology.Topology) []step {
	for _, name := range slices.Sorted(maps.Keys(t.Exchanges)) {
		return []step{{do: put, exchanges: map[string]topology.Exchange{name: t.Exchanges[name]}}}
	}
	return nil
}

// putRest creates everything else but for the policies.
func putRest(t topology.Topology) []step {
	exchanges := maps.Clone(t.Exchanges)
	for _, first := range putFirst(t) {
		maps.DeleteFunc(exchanges, func(name string, _ topology.Exchange) bool { _, is := first.exchanges[name]; return is })
	}
	return []step{{do: put, exchanges: exchanges}, {do: put, queues: t.Queues}, {do: put, bindings: t.Bindings}}
}

// guardFirst are the policies to write before the queues exist, if policies of others match one of
// the queues: those would expire or truncate it, or delete it, until the owner's are there.
func (c Change) guardFirst(missing topology.Topology) []topology.NamedPolicy {
	_, own := c.split(missing.Queues)
	if !c.coveredByOthers(own) {
		return nil
	}
	guard := maps.Clone(c.Guard)
	maps.DeleteFunc(guard, func(name string, _ topology.Policy) bool { _, isMissing := missing.Policies[name]; return !isMissing })
	return c.writeOrder(guard)
}

// coveredByOthers reports whether a policy that is not the owner's matches one of the queues. A pattern
// that cannot be evaluated may match.
func (c Change) coveredByOthers(queues map[string]topology.Queue) bool {
	for policyName, policy := range c.All.Policies {
		_, isLive := c.Live.Policies[policyName]
		_, isWanted := c.Wanted.Policies[policyName]
		if isLive || isWanted {
			continue
		}
		for name, queue := range queues {
			if matches, err := policy.AppliesTo(name, queue.Type); matches || err != nil {
				return true
			}
		}
	}
	return false
}
