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
	return e.delete(ctx, bindingOf(b))
}

func (e *execution) removePolicy(ctx context.Context, policy topology.NamedPolicy) error {
	e.undo.add("restore policy "+policy.Name, e.declare(namedPolicy(policy)))
	return e.delete(ctx, namedPolicy(policy))
}

// shut deletes an exchange. If a later step fails, the exchange comes back with all its bindings.
func (e *execution) shut(ctx context.Context, o object) error {
	if err := e.requireUnbound(ctx, o.alone); err != nil {
		return err
	}
	bindings, err := e.noteAll(ctx, o.name)
	if err != nil {
		return err
	}
	e.undo.add("restore exchange "+o.name, func(ctx context.Context) error {
		return errors.Join(e.write(ctx, o), e.bindBack(ctx, o.name, bindings))
	})
	return e.delete(ctx, o)
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
			delete(e.deleted, name)
			return e.declare(queueOf(name, e.All.Queues[name]))(ctx)
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
	case once:
		return err
	}
	_ = pause(ctx, e.times.Poll) // it is not cancelled
	return e.repeat(ctx, func(err error) bool { return broker.IsUnanswered(err) && !isA[*BoundError](err) }, remove)
}

// deleteUnbound deletes a queue that others have not bound, and records whether it can still be deleted later.
func (e *execution) deleteUnbound(ctx context.Context, name string, queue topology.Queue) error {
	if err := e.requireUnbound(ctx, queueOf(name, queue).alone); err != nil {
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

// ends reports whether the reasons to keep queues leave none to delete.
func (s step) ends(kept map[string]string) bool {
	return len(without(s.queues, kept)) == 0 || len(kept) > 0 && s.allOrNone()
}

// removeEmpty returns the reason for each queue that it keeps. A queue with visible messages usually stays bound. If
// the queues have time to drain, all of them are unbound first. The sidecar learns of the new schedule only after the
// change, and uses another delay meanwhile.
func (e *execution) removeEmpty(ctx context.Context, s step) (kept map[string]string, err error) {
	unbound := map[string]topology.Queue{}
	defer func() {
		exist := without(unbound, e.deleted)
		err = errors.Join(err, notUndone(e.restoreAll(ctx, leading(s.bindings, exist))))
	}()
	if s.ifFails == keep && e.Drain > 0 {
		maps.Copy(unbound, s.queues)
		if err := each(ctx, leading(s.bindings, unbound), e.removeBinding); err != nil {
			return nil, err
		}
	}
	kept, err = e.filled(ctx, s)
	if err != nil || s.ends(kept) {
		return kept, err
	}
	s.queues, s.checks = without(s.queues, kept), without(s.checks, kept)
	if len(s.recreated) > 0 {
		if s.bindings, err = e.present(ctx, s.bindings, s.queues); err != nil {
			return kept, err
		}
	}
	maps.Copy(unbound, s.queues)
	against, err := e.removeUnbound(ctx, s)
	maps.Copy(kept, against)
	return kept, err
}

// filled returns a reason for each queue of a step that is known not to be empty.
func (e *execution) filled(ctx context.Context, s step) (map[string]string, error) {
	kept, err := e.lastingContents(ctx, s.checks)
	if err == nil && len(kept) == 0 && s.allOrNone() {
		// A new consumer, or a message that has left another queue, can be missing from the counts. If the queue were unbound
		// and then kept, messages for it would be unroutable meanwhile, or wait for minutes.
		if err = pause(ctx, e.times.Lag); err == nil {
			kept, _, err = e.visible(ctx, e.Vhost, s.checks)
		}
	}
	if err != nil {
		return kept, err
	}
	// A queue that does not answer is not unbound for a proof that must fail.
	return kept, e.ask(ctx, s, kept)
}

// ask adds the reason for each other queue of a step that is not known to be empty. If the step refuses, an error that lasts ends it.
func (e *execution) ask(ctx context.Context, s step, kept map[string]string) error {
	against, lasting := e.answers(ctx, without(s.queues, kept))
	maps.Copy(kept, against)
	if s.ifFails == refuse {
		return lasting
	}
	return nil
}

// removeUnbound unbinds the queues of a step, so that no message arrives between the proof and the deletion. Then it
// proves that they are empty and deletes them.
func (e *execution) removeUnbound(ctx context.Context, s step) (map[string]string, error) {
	if err := each(ctx, leading(s.bindings, s.queues), e.removeBinding); err != nil {
		return nil, err
	}
	against, err := e.settleAndProve(ctx, s.checks, s.allOrNone())
	if err == nil && !s.ends(against) {
		err = e.ask(ctx, s, against)
	}
	if err != nil || s.ends(against) {
		return against, err
	}
	empty := without(s.queues, against)
	if err := e.requireUnbound(ctx, topology.Topology{Queues: empty}); err != nil {
		return nil, err
	}
	var failed []error
	for name, queue := range sorted(empty) {
		wanted, recreated := s.recreated[name]
		err := e.removeQueue(ctx, name, queue, recreated)
		if err == nil && recreated {
			err = e.createAgain(ctx, queueOf(name, wanted), queueOf(name, queue))
		}
		failed = append(failed, err)
	}
	return against, errors.Join(failed...)
}

// restoreAll restores bindings, even after a cancellation.
func (e *execution) restoreAll(ctx context.Context, bindings []topology.Binding) error {
	return e.insist(ctx, func(ctx context.Context) error { return e.rebind(ctx, bindings) })
}
