package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// removeBinding records the binding before it deletes it, because the deletion can take effect even if its answer is
// lost. To restore an existing binding changes nothing. The same is true for policies.
func (e *execution) removeBinding(ctx context.Context, b topology.Binding) error {
	if noted, isNote := e.Notes.Noted(b); isNote && e.unrestored[noted.String()] && e.RestoresBindings {
		return nil // the other end is still missing, and restores the binding when it comes back
	}
	e.undo.add("restore binding "+b.String(), func(ctx context.Context) error { return e.rebind(ctx, []topology.Binding{b}) })
	return e.lookUpDeletion(ctx, fmt.Sprintf("delete binding %q", b), e.client.Unbind(ctx, e.Vhost, b), func(now topology.Topology) bool {
		return !slices.ContainsFunc(now.Bindings, b.Equal)
	})
}

func (e *execution) removePolicy(ctx context.Context, policy topology.NamedPolicy) error {
	e.undo.add("restore policy "+policy.Name, e.putBack(policy))
	err := e.client.DeletePolicy(ctx, e.Vhost, policy.Name)
	return e.lookUpDeletion(ctx, fmt.Sprintf("delete policy %q", policy.Name), err, func(now topology.Topology) bool {
		return !has(now.Policies, policy.Name)
	})
}

func (e *execution) removeExchange(ctx context.Context, name string) error {
	err := e.client.DeleteExchange(ctx, e.Vhost, name)
	return e.lookUpDeletion(ctx, fmt.Sprintf("delete exchange %q", name), err, func(now topology.Topology) bool {
		return !has(now.Exchanges, name)
	})
}

// lookUpDeletion is the error of a deletion. If it was not answered, its effect is looked up. If the object came back at once, the late
// deletion would delete it again.
func (e *execution) lookUpDeletion(ctx context.Context, what string, err error, gone func(topology.Topology) bool) error {
	if err == nil || broker.IsUnanswered(err) && e.lookUp(ctx, gone) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// shut deletes an exchange. If a later step fails, the exchange comes back with all its bindings.
func (e *execution) shut(ctx context.Context, name string, exchange topology.Exchange) error {
	if err := e.requireUnbound(ctx, topology.Topology{Exchanges: map[string]topology.Exchange{name: exchange}}); err != nil {
		return err
	}
	bindings, err := e.noteAll(ctx, name)
	if err != nil {
		return err
	}
	e.undo.add("restore exchange "+name, func(ctx context.Context) error {
		return errors.Join(e.createExchange(ctx, name, exchange), e.bindBack(ctx, name, bindings))
	})
	return e.removeExchange(ctx, name)
}

// removeQueue deletes a queue, either for good or to re-create it. If the broker does not say whether the queue is
// deleted, it stays unbound. Otherwise a late deletion would lose new messages.
func (e *execution) removeQueue(ctx context.Context, name string, queue topology.Queue, recreated bool) error {
	err := e.deleteUntilAnswered(ctx, name, queue, recreated)
	switch {
	case err == nil && recreated:
		return nil // its bindings are restored
	case err == nil:
		e.deleted[name] = true
		e.undo.add("restore queue "+name, func(ctx context.Context) error {
			_, err := e.client.PutQueue(ctx, e.Vhost, name, e.All.Queues[name])
			delete(e.deleted, name)
			return err
		})
		return nil
	case e.deletionUnknown[name]:
		return fmt.Errorf("delete queue %q: the broker did not confirm the deletion, and can still delete the queue. "+
			"It stays unbound until the next apply: %w", name, err)
	}
	return fmt.Errorf("delete queue %q: %w", name, err)
}

// deleteUntilAnswered deletes a queue without bindings of others, and tries again if the broker does not answer. If a
// node dies during a deletion, a quorum queue can be left without members, so that nothing can be proved about it (3.10
// to 4.3). An unbound queue receives no messages. The first attempt can take effect at any time, so another attempt
// cannot lose other messages. A queue that is re-created, here or by an application, gets only one attempt, because
// another queue can have its name by then. A cancellation comes before the first attempt or has no effect.
func (e *execution) deleteUntilAnswered(ctx context.Context, name string, queue topology.Queue, recreated bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	remove := func(ctx context.Context) error { return e.deleteUnbound(ctx, name, queue) }
	once := len(e.deletionUnknown) > 0
	err := remove(ctx)
	switch {
	case !e.deletionUnknown[name]:
		return err
	case recreated || slices.Contains(e.SharedQueues, name):
		return e.awaitDeletion(ctx, name, err)
	case once || pause(ctx, e.times.Poll) != nil:
		return err
	}
	return e.repeat(ctx, func(err error) bool { return broker.IsUnanswered(err) && !isBound(err) }, remove)
}

// deleteUnbound deletes a queue that others have not bound, and records whether it can still be deleted later.
func (e *execution) deleteUnbound(ctx context.Context, name string, queue topology.Queue) error {
	if err := e.requireUnbound(ctx, topology.Topology{Queues: map[string]topology.Queue{name: queue}}); err != nil {
		return err
	}
	err := e.client.DeleteQueue(ctx, e.Vhost, name, queue.Type)
	if err == nil {
		delete(e.deletionUnknown, name)
	} else if broker.IsUnanswered(err) {
		e.deletionUnknown[name] = true
	}
	return err
}

// awaitDeletion looks for the effect of a queue's unanswered deletion. If the queue still runs with all its members in the end, the
// deletion has not arrived.
func (e *execution) awaitDeletion(ctx context.Context, name string, unanswered error) error {
	gone := e.lookUp(ctx, func(now topology.Topology) bool { return !has(now.Queues, name) })
	info, err := e.client.Queue(ctx, e.Vhost, name)
	if gone || err == nil && inspectPending(info).Unknown == "" {
		delete(e.deletionUnknown, name)
	}
	if gone {
		return nil
	}
	return unanswered
}

// removeIfEmpty deletes the queues of a step that are proved empty. Other queues are bound again and kept. If the step
// refuses, one such queue keeps all of them, and it fails with *KeptError. Queues that are deleted all or none are
// tried again while there is time to drain.
func (e *execution) removeIfEmpty(ctx context.Context, s step) error {
	kept, err := e.removeEmpty(ctx, s)
	for s.ifFails == keepAll && err == nil && len(kept) > 0 && time.Now().Before(e.drainUntil) {
		kept, err = e.removeEmpty(ctx, s)
	}
	if s.ifFails == refuse {
		return keptUnless(kept, err)
	}
	if s.ifFails == keepAll && len(kept) > 0 {
		for name := range without(s.queues, kept) {
			e.kept[name] = "it stays as long as the other queues, because messages pass from one queue to the next"
		}
	}
	maps.Copy(e.kept, kept)
	return err
}

// allOrNone reports whether one queue that is not proved empty keeps all of them.
func (s step) allOrNone() bool { return s.ifFails == refuse || s.ifFails == keepAll }

// removeEmpty returns the reason for each queue that it keeps. A queue with visible messages usually stays bound. If
// the queues have time to drain, all of them are unbound first. The sidecar learns of the new schedule only after the
// change, and uses another delay meanwhile.
func (e *execution) removeEmpty(ctx context.Context, s step) (map[string]string, error) {
	unbound := map[string]topology.Queue{}
	if s.ifFails == keep && e.Drain > 0 {
		maps.Copy(unbound, s.queues)
	}
	if err := e.unbindAll(ctx, s.bindings, unbound); err != nil {
		return nil, errors.Join(err, e.bindAgain(ctx, s.bindings, unbound))
	}
	kept, err := e.lastingContents(ctx, s.checks)
	if s.allOrNone() && err == nil && len(kept) == 0 {
		// A new consumer, or a message that has left another queue, can be missing from the counts. If the queue were unbound
		// and then kept, messages for it would be unroutable meanwhile, or wait for minutes.
		if err = pause(ctx, e.times.Lag); err == nil {
			kept, _, err = e.visible(ctx, e.Vhost, s.checks)
		}
	}
	if err == nil {
		// A queue that does not answer is not unbound for a proof that must fail.
		var against map[string]string
		against, err = e.ask(ctx, s, without(s.queues, kept))
		maps.Copy(kept, against)
	}
	candidates := without(s.queues, kept)
	if err != nil || len(candidates) == 0 || len(kept) > 0 && s.allOrNone() {
		return kept, errors.Join(err, e.bindAgain(ctx, s.bindings, unbound))
	}
	if len(s.recreated) > 0 {
		if s.bindings, err = e.present(ctx, s.bindings, candidates); err != nil {
			return kept, err
		}
	}
	maps.Copy(unbound, candidates)
	s.checks = without(s.checks, kept)
	against, err := e.removeUnbound(ctx, s, candidates, unbound)
	maps.Copy(kept, against)
	return kept, errors.Join(err, e.bindAgain(ctx, s.bindings, unbound))
}

// ask returns a reason for each queue of a step that is not known to be empty. If the step refuses, an error that lasts ends it.
func (e *execution) ask(ctx context.Context, s step, queues map[string]topology.Queue) (map[string]string, error) {
	against, lasting := e.answers(ctx, queues)
	if s.ifFails != refuse {
		lasting = nil
	}
	return against, lasting
}

// removeUnbound unbinds the candidates, so that no message arrives between the proof and the deletion. Then it proves
// that they are empty and deletes them. It removes the deleted queues from remaining.
func (e *execution) removeUnbound(ctx context.Context, s step, candidates, remaining map[string]topology.Queue) (map[string]string, error) {
	if err := e.unbindAll(ctx, s.bindings, candidates); err != nil {
		return nil, err
	}
	against, err := e.settleAndProve(ctx, s.checks, s.allOrNone())
	if err != nil || len(against) > 0 && s.allOrNone() {
		return against, err
	}
	holding, err := e.ask(ctx, s, without(candidates, against))
	if err != nil {
		return nil, err
	}
	maps.Copy(against, holding)
	if len(against) > 0 && s.allOrNone() {
		return against, nil
	}
	empty := without(candidates, against)
	if err := e.requireUnbound(ctx, topology.Topology{Queues: empty}); err != nil {
		return nil, err
	}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(empty)) {
		wanted, recreated := s.recreated[name]
		err := e.removeQueue(ctx, name, candidates[name], recreated)
		switch {
		case err != nil:
		case recreated:
			err = createAgain(ctx, e, e.client.PutQueue, name, wanted, candidates[name])
		default:
			delete(remaining, name)
		}
		failed = append(failed, err)
	}
	return against, errors.Join(failed...)
}

// unbindAll deletes the bindings to the queues.
func (e *execution) unbindAll(ctx context.Context, bindings []topology.Binding, queues map[string]topology.Queue) error {
	return each(ctx, leading(bindings, queues), e.removeBinding)
}

// bindAgain restores the bindings of queues that still exist, even after a failure or a cancellation.
func (e *execution) bindAgain(ctx context.Context, bindings []topology.Binding, queues map[string]topology.Queue) error {
	return notUndone(e.restoreAll(ctx, leading(bindings, queues)))
}

// restoreAll restores bindings, even after a cancellation.
func (e *execution) restoreAll(ctx context.Context, bindings []topology.Binding) error {
	return e.insist(ctx, func(ctx context.Context) error { return e.rebind(ctx, bindings) })
}
