package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// write writes an object, and records it if the write took effect, or could still do so. Without an answer, it looks up
// the object on the broker. It never repeats a write blindly.
func (e *execution) write(ctx context.Context, o object) error {
	what := "create " + o.String()
	if o.kind == aPolicy {
		what = "write " + o.String()
	}
	isNew, err := e.put(ctx, o)
	joined := !isNew && o.kind == aQueue && slices.Contains(e.Joined, o.name) // the broker compared type and arguments
	same, other := err == nil, false
	switch {
	case err == nil && e.onlyNew && !isNew && !joined:
		e.remember(func(*topology.Topology) { e.contested = true })
		return fmt.Errorf("%s: it already exists, because another process created it a moment ago. "+
			"Nothing is removed, since all objects can belong to that process. Import them, or choose another name", what)
	case broker.IsUnanswered(err):
		same, other = e.lookUpWrite(ctx, o)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	if !other && !joined {
		e.remember(o.addTo)
	}
	if !same {
		return fmt.Errorf("%s: the broker did not confirm the write, and the object can still appear: %w", what, err)
	}
	return nil
}

// lookUpWrite looks for the effect of an unanswered write. It reports whether the broker has the object, or another object
// with its name. A queue must have a leader. A policy with other content does not count, since the write can still change it.
func (e *execution) lookUpWrite(ctx context.Context, o object) (same, other bool) {
	e.lookUp(ctx, func(now topology.Topology) bool {
		var exists bool
		exists, same = o.in(now)
		other = exists && !same && o.kind != aPolicy
		return same || other
	})
	if same && o.kind == aQueue {
		unstarted, err := e.Unstarted(ctx, e.Vhost, o.name)
		same = err == nil && len(unstarted) == 0
	}
	return same, other
}

// delete deletes an object. If the deletion was not answered, its effect is looked up. If the object came back at once,
// the late deletion would delete it again.
func (e *execution) delete(ctx context.Context, o object) error {
	err := e.remove(ctx, o)
	gone := func(now topology.Topology) bool { exists, _ := o.in(now); return !exists }
	if err == nil || broker.IsUnanswered(err) && e.lookUp(ctx, gone) {
		return nil
	}
	return fmt.Errorf("delete %s: %w", o, err)
}

// lookUp looks for the effect of a write that was not answered for Times.Patience, even after a cancellation.
func (e *execution) lookUp(ctx context.Context, look func(topology.Topology) (found bool)) (found bool) {
	const looks = 6
	ctx = context.WithoutCancel(ctx)
	for range looks {
		if now, err := e.client.List(ctx, e.Vhost); err == nil && look(now.Topology) {
			return true
		}
		_ = pause(ctx, e.times.Patience/looks)
	}
	return false
}

// remember records made objects.
func (e *execution) remember(note func(made *topology.Topology)) {
	e.madeMutex.Lock()
	defer e.madeMutex.Unlock()
	note(&e.made)
}

// writePolicy creates or overwrites a policy. The journal restores an overwritten one.
func (e *execution) writePolicy(ctx context.Context, policy topology.NamedPolicy) error {
	if before, exists := e.Live.Policies[policy.Name]; exists { // also from an interrupted creation
		e.undo.add("restore policy "+policy.Name, e.declare(namedPolicy(topology.NamedPolicy{Name: policy.Name, Policy: before})))
	}
	return e.write(ctx, namedPolicy(policy))
}

// repeat sends a request again while its error is such, for Times.Patience since the last request without such an error. To
// repeat the request must change nothing.
func (e *execution) repeat(ctx context.Context, while func(error) bool, request func(context.Context) error) error {
	for {
		err := request(ctx)
		if err == nil || !while(err) {
			e.failingSince = time.Time{}
			return err
		}
		if e.failingSince.IsZero() {
			e.failingSince = time.Now()
		}
		if time.Since(e.failingSince) > e.times.Patience || pause(ctx, e.times.Poll) != nil {
			return err
		}
	}
}

// insist repeats a request that restores something, whatever its error, even after a cancellation.
func (e *execution) insist(ctx context.Context, request func(context.Context) error) error {
	return e.repeat(context.WithoutCancel(ctx), func(err error) bool { return !broker.IsNotFound(err) }, request)
}

// rebind makes all bindings that it can, and reports the others. It leaves out queues that are deleted or can still be
// deleted.
func (e *execution) rebind(ctx context.Context, bindings []topology.Binding) error {
	var failed []error
	for _, b := range bindings {
		e.unrestored[b.String()] = true
		if !b.ToExchange && (e.deleted[b.Destination] || e.deletionUnknown[b.Destination]) {
			continue
		}
		if err := e.client.Bind(ctx, e.Vhost, b); err != nil {
			failed = append(failed, fmt.Errorf("restore binding %q: %w", b, err))
			continue
		}
		delete(e.unrestored, b.String())
	}
	return errors.Join(failed...)
}

// attaching selects the bindings that make a queue the owner's.
func (c Change) attaching(bindings []topology.Binding) step {
	attaches := func(b topology.Binding) bool { return c.AttachedBy != nil && c.AttachedBy(b) != "" }
	return step{do: confirm, bindings: only(bindings, attaches)}
}

// confirm fails if another owner has attached one of the queues since the vhost was read. Every owner looks after its
// own write, so at least the last one sees the others. It then deletes its own bindings to these queues, and leaves the
// others' bindings.
func (e *execution) confirm(ctx context.Context, s step) error {
	return forEachParallel(ctx, s.bindings, func(ctx context.Context, own topology.Binding) error {
		now, err := e.client.BindingsTo(ctx, e.Vhost, own.Destination)
		if err != nil && !broker.IsNotFound(err) {
			return fmt.Errorf("cannot tell whether another pipeline attached queue %q at the same time: %w", own.Destination, err)
		}
		isRival := func(b topology.Binding) bool {
			owner := e.AttachedBy(b)
			return owner != "" && owner != e.AttachedBy(own) && !slices.ContainsFunc(e.All.Bindings, b.Equal)
		}
		rival := slices.IndexFunc(now, isRival)
		if rival < 0 {
			return nil
		}
		left := e.client.Unbind(context.WithoutCancel(ctx), e.Vhost, own)
		if left == nil { // else the removal of what was made would check that it can be restored, and so restore it
			e.remember(func(made *topology.Topology) { made.Bindings = slices.DeleteFunc(made.Bindings, own.Equal) })
		}
		return errors.Join(
			fmt.Errorf("queue %q was attached to the pipeline %q at the same time. A queue belongs to one pipeline: remove it from one of the two",
				own.Destination, e.AttachedBy(now[rival])),
			notUndone(left),
		)
	})
}
