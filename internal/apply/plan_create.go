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
	identity := topology.Diff(c.Identity, c.Live).Create
	attach := step{do: put, policies: c.writeOrder(topology.Merge(missing, changes.Update).Policies)}
	steps := slices.Concat([]step{attach}, putAll(missing), []step{c.attaching(missing.Bindings)})
	if len(c.Identity.Exchanges) > 0 {
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
	guard := maps.Clone(c.Guard)
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
