package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// step is one part of a change: what is done, to which objects, and what becomes of the change if it
// fails. Exchanges, queues and bindings of one step are written side by side; policies are written and
// deleted in their order, and all objects are deleted one after another.
type step struct {
	do      action
	ifFails failure

	exchanges map[string]topology.Exchange
	queues    map[string]topology.Queue
	// bindings are those to write or delete, or, where queues or exchanges are deleted, those that lead to
	// them.
	bindings []topology.Binding
	policies []topology.NamedPolicy
	// checks are what speaks against going on, by queue.
	checks emptinessChecks
}

// action is what a step does.
type action string

const (
	// drain waits until nothing is visible in queues that still receive messages.
	drain action = "drain"
	// proveNonePending proves that no dead letters are pending, apart from those that pass through.
	proveNonePending action = "prove none pending"
	// prove proves that queues are empty which receive nothing any more.
	prove action = "prove"
	// ask asks quorum queues themselves whether they are empty.
	ask action = "ask"
	// requireUnbound fails if bindings of others lead to exchanges or queues.
	requireUnbound action = "require unbound"
	// unbind deletes bindings of the owner's.
	unbind action = "unbind"
	// shut deletes an exchange, which comes back with its bindings if a later step fails.
	shut action = "shut"
	// requireUnused fails if somebody has begun to use what is removed.
	requireUnused action = "require unused"
	// confirm looks whether somebody else attached the queues of bindings at the same time.
	confirm action = "confirm"
	// put creates objects, or writes over policies.
	put action = "put"
	// remove deletes objects; queues are proved to be empty, and receive nothing.
	remove action = "delete"
	// removeForced deletes queues with all that is in them.
	removeForced action = "delete forced"
	// removeIfEmpty unbinds queues, proves that they are empty, asks them, and deletes them.
	removeIfEmpty action = "delete if empty"
	// removeUnlessKept deletes exchanges, unless queues that were to go have been kept.
	removeUnlessKept action = "delete unless kept"
	// replace deletes exchanges or queues, and creates them with other properties.
	replace action = "replace"
	// restore makes bindings of others again that an apply which was killed has left unbound.
	restore action = "restore"
	// alter writes policies with other content that has no effect.
	alter action = "alter"
)

// failure is what becomes of the change if a step fails.
type failure int

const (
	// stop leaves what was done: the next plan shows what is missing.
	stop failure = iota
	// refuse is stop before anything was touched; a step that finds messages is repeated while there is
	// time to drain.
	refuse
	// keep leaves the queues that are not proved to be empty as they were, and goes on.
	keep
	// keepAll leaves all queues as they were if one of them is not proved to be empty, and goes on.
	keepAll
	// rollBack puts back what was removed, by the journal.
	rollBack
	// removeMade removes what was made, as long as that loses no message.
	removeMade
	// goOn notes what the broker does not answer, and goes on, since nobody can take up the change again;
	// anything else is rolled back.
	goOn
)

// nothing reports whether there is no object to act on.
func (s step) nothing() bool {
	return len(s.exchanges)+len(s.queues)+len(s.bindings)+len(s.policies)+len(s.checks) == 0
}

// String names the objects, for tests and errors.
func (s step) String() string {
	var objects []string
	for _, name := range slices.Sorted(maps.Keys(s.exchanges)) {
		objects = append(objects, "exchange "+name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		objects = append(objects, "queue "+name)
	}
	for _, b := range s.bindings {
		objects = append(objects, "binding "+b.String())
	}
	for _, p := range s.policies {
		objects = append(objects, fmt.Sprintf("policy %s %s", p.Name, p.Pattern))
	}
	for _, queue := range slices.Sorted(maps.Keys(s.checks)) {
		objects = append(objects, string(s.checks[queue])+" of "+queue)
	}
	return string(s.do) + ": " + strings.Join(objects, ", ")
}

// inOrder leaves out the steps that have nothing to act on.
func inOrder(steps ...step) []step {
	return slices.DeleteFunc(steps, step.nothing)
}

// allFail says what becomes of the change if any of the steps fails.
func allFail(how failure, steps []step) []step {
	for i := range steps {
		steps[i].ifFails = how
	}
	return steps
}
