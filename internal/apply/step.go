package apply

import (
	"context"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// step is one part of a change: an action, its objects, and how the change continues if it fails. Exchanges, queues and
// bindings of one step are written in parallel. Policies are written and deleted in their order, and all objects are
// deleted one by one.
type step struct {
	do      *action
	ifFails failure

	exchanges map[string]topology.Exchange
	queues    map[string]topology.Queue
	// recreated are the queues to create in place of deleted ones.
	recreated map[string]topology.Queue
	// bindings are the bindings to write or delete. If the step deletes queues or exchanges, they are the bindings to
	// these.
	bindings []topology.Binding
	policies []topology.NamedPolicy
	// checks can stop the step, by queue.
	checks emptinessChecks
}

// topology has the exchanges, queues and bindings.
func (s step) topology() topology.Topology {
	return topology.Topology{Exchanges: s.exchanges, Queues: s.queues, Bindings: s.bindings}
}

func (s step) objects() []object { return objectsOf(s.topology()) }

// action is what a step does. Its name is for tests and debuggers.
type action struct {
	name string
	run  func(e *execution, ctx context.Context, s step) error
}

// All actions. Where one is a method, the method says what it does.
var (
	drain            = &action{"drain", (*execution).drain}
	proveNonePending = &action{"prove none pending", (*execution).proveNonePending}
	prove            = &action{"prove", (*execution).prove}
	// ask asks quorum queues themselves whether they are empty.
	ask = &action{"ask", func(e *execution, ctx context.Context, s step) error { return keptUnless(e.answers(ctx, s.queues)) }}
	// requireRights fails if the user may not delete the objects or restore the bindings.
	requireRights = &action{"require rights", func(e *execution, ctx context.Context, s step) error {
		return e.requireRights(ctx, s.topology())
	}}
	// requireUnbound fails if others have bound the exchanges or queues.
	requireUnbound = &action{"require unbound", func(e *execution, ctx context.Context, s step) error {
		return e.requireUnbound(ctx, s.topology())
	}}
	// requireUnused fails if others have begun to use the removed objects.
	requireUnused = &action{"require unused", func(e *execution, ctx context.Context, _ step) error { return e.Unused(ctx) }}
	// unbind deletes the owner's bindings.
	unbind = &action{"unbind", func(e *execution, ctx context.Context, s step) error { return each(ctx, s.bindings, e.removeBinding) }}
	// restore makes other owners' bindings that a killed apply left unbound.
	restore = &action{"restore", func(e *execution, ctx context.Context, s step) error { return each(ctx, s.bindings, e.restore) }}
	// alter writes policies with other content that has no effect.
	alter   = &action{"alter", func(e *execution, ctx context.Context, s step) error { return each(ctx, s.policies, e.putChanged) }}
	confirm = &action{"confirm", (*execution).confirm}
	put     = &action{"put", (*execution).putAll}
	shut    = &action{"shut", func(e *execution, ctx context.Context, s step) error { return each(ctx, s.objects(), e.shut) }}
	remove  = &action{"delete", (*execution).deleteAll}
	// removeUnlessKept deletes exchanges, unless queues of the change were kept.
	removeUnlessKept = &action{"delete unless kept", func(e *execution, ctx context.Context, s step) error {
		if len(e.kept) > 0 {
			return nil
		}
		return e.deleteAll(ctx, s)
	}}
	removeIfEmpty    = &action{"delete if empty", (*execution).removeIfEmpty}
	rehearse         = &action{"rehearse", (*execution).rehearse}
	try              = &action{"try", (*execution).try}
	replaceQueues    = &action{"replace", (*execution).replaceQueues}
	replaceExchanges = &action{"replace", func(e *execution, ctx context.Context, s step) error {
		return each(ctx, s.objects(), e.replaceExchange)
	}}
)

// failure says how the change continues if a step fails.
type failure int

const (
	// stop leaves the changes. The next plan shows the missing ones.
	stop failure = iota
	// refuse stops before any change. If the step finds messages, it is tried again while there is time to drain.
	refuse
	// keep leaves a queue unchanged if it is not proved empty, and goes on.
	keep
	// keepAll leaves all queues unchanged if one of them is not proved empty, and goes on.
	keepAll
	// rollBack restores removed objects from the journal.
	rollBack
	// removeMade removes the made objects if that loses no message.
	removeMade
	// goOn records unanswered requests and goes on, because no later run can continue the change. Other failures are
	// rolled back.
	goOn
)

// inOrder leaves out steps without objects.
func inOrder(steps ...step) []step {
	return slices.DeleteFunc(steps, func(s step) bool {
		return len(s.exchanges)+len(s.queues)+len(s.bindings)+len(s.policies)+len(s.checks) == 0
	})
}
