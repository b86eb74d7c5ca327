package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// execution carries out the steps of one change and records how to undo them.
type execution struct {
	*Applier
	Change
	// onlyNew refuses existing objects, which can belong to others.
	onlyNew bool
	// made has the created and written objects. Several goroutines add to it.
	made      topology.Topology
	madeMutex sync.Mutex
	// undo restores removed objects.
	undo journal
	// deleted are the queues that were deleted for good.
	deleted map[string]bool
	// deletionUnknown are the queues whose deletion was not answered. It can still take effect.
	deletionUnknown map[string]bool
	// unrestored are the bindings, as text, that the last attempt to restore them did not restore.
	unrestored map[string]bool
	// failingSince is since when repeated requests have failed.
	failingSince time.Time
	// kept has the reasons for the queues that were not deleted.
	kept map[string]string
	// unanswered has the errors of unanswered requests in steps that go on.
	unanswered []error
	// contested means that someone else creates the same objects. Brokers can tell two creators that an object is new,
	// so the made objects can be theirs.
	contested bool
	// waited means that time has passed since the vhost was read.
	waited bool
	// drainUntil is the end of the change's time to drain, at least Times.Stale after its beginning.
	drainUntil time.Time
	// hidden are the queues that delay a message which a question has found, so that later questions do not find it.
	hidden map[string]string
	// stuckSince is since when every inspection found messages in a shared queue without consumers.
	stuckSince map[string]time.Time
}

func (a *Applier) execution(change Change) *execution {
	return &execution{
		Applier: a, Change: change, made: topology.New(), deletionUnknown: map[string]bool{},
		deleted: map[string]bool{}, unrestored: map[string]bool{}, kept: map[string]string{},
		drainUntil: time.Now().Add(max(change.Drain, a.times.Stale)), stuckSince: map[string]time.Time{},
		hidden: map[string]string{},
	}
}

func (e *execution) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if err := e.attempt(ctx, s); err != nil {
			return errors.Join(err, notUndone(e.clean(ctx, s.ifFails)))
		}
	}
	return nil
}

// attempt carries out a step. If the step refuses, it tries again while there is time to drain.
func (e *execution) attempt(ctx context.Context, s step) error {
	if s.ifFails == refuse {
		return e.untilDrained(func() error { return s.do.run(e, ctx, s) })
	}
	return s.do.run(e, ctx, s)
}

func (e *execution) clean(ctx context.Context, after failure) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	switch {
	case after == rollBack || after == goOn:
		return e.undo.rollback(ctx)
	case after == removeMade && !e.contested:
		return e.removeMade(ctx)
	}
	return nil
}

// removeAll deletes everything or nothing. While there is time to drain, it starts again.
func (e *execution) removeAll(ctx context.Context, ifUnanswered failure) error {
	// Who lacks a permission learns of it before anything is unbound. Messages are left to the proof: each question counts against a
	// delivery limit, so they are not asked for again and again.
	if _, lasting := e.answers(ctx, e.Live.Queues); lasting != nil {
		return lasting
	}
	if err := e.requireRights(ctx, e.Live); err != nil {
		return err
	}
	return e.untilDrained(func() error {
		if err := e.run(ctx, planDrain(e.Change)); err != nil {
			return err
		}
		if e.Recheck != nil && e.waited {
			var err error
			if e.All, e.Live, err = e.Recheck(ctx); err != nil {
				return err
			}
		}
		e.waited = true // for the next attempt
		steps, err := planRemove(e.Change, ifUnanswered)
		if err != nil {
			return err
		}
		return e.run(ctx, steps)
	})
}

// putAll creates objects in parallel, and writes policies in their order.
func (e *execution) putAll(ctx context.Context, s step) error {
	if err := forEachParallel(ctx, s.objects(), e.write); err != nil {
		return err
	}
	return e.withStableLeaders(ctx, s.policies, func(ctx context.Context) error { return e.writePolicies(ctx, s.policies) })
}

// deleteAll deletes objects one by one. Queues must be proved empty and unbound.
func (e *execution) deleteAll(ctx context.Context, s step) error {
	for name, queue := range sorted(s.queues) {
		if err := e.tolerated(s, e.removeQueue(ctx, name, queue, false)); err != nil {
			return err
		}
	}
	removePolicies := func(ctx context.Context) error { return each(ctx, s.policies, e.removePolicy) }
	if err := e.tolerated(s, e.withStableLeaders(ctx, s.policies, removePolicies)); err != nil {
		return err
	}
	return each(ctx, objectsOf(topology.Topology{Exchanges: s.exchanges}), func(ctx context.Context, o object) error {
		e.undo.add("restore exchange "+o.name, e.declare(o))
		return e.tolerated(s, e.delete(ctx, o))
	})
}

// tolerated records the error of an unanswered request, if the step goes on after it. Otherwise it returns the error.
func (e *execution) tolerated(s step, err error) error {
	if err == nil || s.ifFails != goOn || !broker.IsUnanswered(err) || isA[*BoundError](err) {
		return err
	}
	e.unanswered = append(e.unanswered, err)
	return nil
}

// answers asks quorum queues for a message, since the statistics of a proof can be gathered less often than by default
// (quorum_tick_interval). Classic queues check themselves when they are deleted. It returns a reason for each queue that is
// not known to be empty. An error can hide a message, so it counts as a reason. It also returns the errors that last, such as a
// missing permission.
func (e *execution) answers(ctx context.Context, queues map[string]topology.Queue) (against map[string]string, lasting error) {
	against = map[string]string{}
	for name, queue := range sorted(queues) {
		if queue.Type != topology.Quorum || !Answers(e.All.Queues[name]) {
			continue
		}
		// A question can take a message over a delivery limit, so a queue with visible messages is not asked.
		if seen, err := e.inspectQueue(ctx, e.Vhost, name, contents); err == nil && seen.Found != "" || e.hidden[name] != "" {
			against[name] = cmp.Or(seen.Found, e.hidden[name])
			continue
		}
		holds, err := e.HoldsMessage(ctx, e.Vhost, name)
		switch {
		case broker.IsNotFound(err):
		case err != nil:
			against[name] = err.Error()
			if isA[*broker.RefusedError](err) || broker.IsUnauthorized(err) {
				lasting = errors.Join(lasting, err)
			}
		case holds:
			against[name] = Uncounted
			if _, delays := topology.NewLookup(e.All).Queue(name).Text("delayed-retry-type"); delays {
				e.hidden[name] = against[name] // the queue delays what a question returns
			}
		}
	}
	return against, lasting
}

// Uncounted describes a message that only a question to its queue finds.
const Uncounted = "a message that the broker's statistics do not count yet"

// Answers reports whether a queue can be asked for a message. Only the consumer can read a queue with a single active
// consumer.
func Answers(queue topology.Queue) bool { return queue.Arguments["x-single-active-consumer"] != true }

// HoldsMessage asks a queue for a ready message: see [broker.Client.HoldsMessage]. The error names the queue and the permission.
func (a *Applier) HoldsMessage(ctx context.Context, vhost, name string) (bool, error) {
	holds, err := a.client.HoldsMessage(ctx, vhost, name)
	switch {
	case err == nil, broker.IsNotFound(err):
		return holds, err
	case isA[*broker.RefusedError](err):
		return false, fmt.Errorf("the broker cannot be asked whether the queue %q is empty: %w", name, err)
	}
	return false, fmt.Errorf("the broker cannot be asked whether the queue %q is empty, which needs read on it: %w", name, err)
}
