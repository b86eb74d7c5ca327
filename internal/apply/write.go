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

// write sends one write, and records the object if it took effect, or could still do so. Without an answer, it looks up
// the object on the broker. It never repeats a write blindly.
func (e *execution) write(
	ctx context.Context, what string, put func() (bool, error),
	look func(topology.Topology) (same, other bool), record func(made *topology.Topology),
) error {
	isNew, err := put()
	switch {
	case err == nil && e.onlyNew && !isNew:
		e.remember(func(*topology.Topology) { e.contested = true })
		return fmt.Errorf("%s: it already exists, because another process created it a moment ago. "+
			"Nothing is removed, since all objects can belong to that process. Import them, or choose another name", what)
	case err != nil && !broker.IsUnanswered(err):
		return fmt.Errorf("%s: %w", what, err)
	}
	same, other := err == nil, false
	if err != nil {
		e.lookUp(ctx, func(now topology.Topology) bool {
			same, other = look(now)
			return same || other
		})
	}
	if !other {
		e.remember(record)
	}
	if !same {
		return fmt.Errorf("%s: the broker did not confirm the write, and the object can still appear: %w", what, err)
	}
	return nil
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

// compare reports whether an object with this name is on the broker as it was sent, or in another form.
func compare[T interface{ Equal(other T) bool }](all map[string]T, name string, sent T) (same, other bool) {
	have, exists := all[name]
	same = exists && have.Equal(sent)
	return same, exists && !same
}

// remember records made objects.
func (e *execution) remember(note func(made *topology.Topology)) {
	e.madeMutex.Lock()
	defer e.madeMutex.Unlock()
	note(&e.made)
}

func (e *execution) createExchange(ctx context.Context, name string, exchange topology.Exchange) error {
	return e.write(ctx, fmt.Sprintf("create exchange %q", name),
		func() (bool, error) { return e.client.PutExchange(ctx, e.Vhost, name, exchange) },
		func(now topology.Topology) (same, other bool) { return compare(now.Exchanges, name, exchange) },
		func(made *topology.Topology) { made.Exchanges[name] = exchange })
}

func (e *execution) createQueue(ctx context.Context, name string, queue topology.Queue) error {
	joined := false
	return e.write(ctx, fmt.Sprintf("create queue %q", name),
		func() (bool, error) {
			isNew, err := e.client.PutQueue(ctx, e.Vhost, name, queue)
			joined = !isNew && slices.Contains(e.Joined, name) // the broker compared type and arguments
			return isNew || joined, err
		},
		func(now topology.Topology) (same, other bool) { return compare(now.Queues, name, queue) },
		func(made *topology.Topology) {
			if !joined {
				made.Queues[name] = queue
			}
		})
}

func (e *execution) createBinding(ctx context.Context, b topology.Binding) error {
	// The broker's answer does not show whether a binding is new.
	return e.write(ctx, fmt.Sprintf("create binding %q", b),
		func() (bool, error) { return true, e.client.Bind(ctx, e.Vhost, b) },
		func(now topology.Topology) (same, other bool) {
			return slices.ContainsFunc(now.Bindings, b.Equal), false
		},
		func(made *topology.Topology) { made.Bindings = append(made.Bindings, b) })
}

// writePolicy creates or overwrites a policy. The journal restores an overwritten one.
func (e *execution) writePolicy(ctx context.Context, policy topology.NamedPolicy) error {
	before, left := e.Live.Policies[policy.Name] // also from an interrupted creation
	if left {
		e.undo.add("restore policy "+policy.Name, e.putBack(topology.NamedPolicy{Name: policy.Name, Policy: before}))
	}
	return e.write(ctx, fmt.Sprintf("write policy %q", policy.Name),
		func() (bool, error) {
			isNew, err := e.client.PutPolicy(ctx, e.Vhost, policy.Name, policy.Policy)
			_, again := e.made.Policies[policy.Name]
			return isNew || again || left, err
		},
		func(now topology.Topology) (same, other bool) {
			same, _ = compare(now.Policies, policy.Name, policy.Policy)
			return same, false // the write can still change another content
		},
		func(made *topology.Topology) { made.Policies[policy.Name] = policy.Policy })
}

// putBack writes a policy's earlier content.
func (e *execution) putBack(policy topology.NamedPolicy) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := e.client.PutPolicy(ctx, e.Vhost, policy.Name, policy.Policy)
		return err
	}
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
		other, err := e.rival(ctx, own)
		if err != nil || other == "" {
			return err
		}
		return errors.Join(
			fmt.Errorf("queue %q was attached to the pipeline %q at the same time. A queue belongs to one pipeline: remove it from one of the two",
				own.Destination, other),
			notUndone(e.client.Unbind(context.WithoutCancel(ctx), e.Vhost, own)),
		)
	})
}

// rival returns another owner that attached the binding's queue meanwhile, or "".
func (e *execution) rival(ctx context.Context, own topology.Binding) (string, error) {
	now, err := e.client.BindingsTo(ctx, e.Vhost, own.Destination)
	if err != nil && !broker.IsNotFound(err) {
		return "", fmt.Errorf("cannot tell whether another pipeline attached queue %q at the same time: %w", own.Destination, err)
	}
	for _, b := range now {
		owner := e.AttachedBy(b)
		if owner != "" && owner != e.AttachedBy(own) && !slices.ContainsFunc(e.All.Bindings, b.Equal) {
			return owner, nil
		}
	}
	return "", nil
}
