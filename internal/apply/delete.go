package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// removeBinding remembers the binding before it is deleted: an answer that got lost is no sign that
// nothing happened, and putting back what is still there changes nothing. The same holds for policies.
func (e *execution) removeBinding(ctx context.Context, b topology.Binding) error {
	e.undo.add("restore binding "+b.String(), func(ctx context.Context) error { return e.rebind(ctx, []topology.Binding{b}) })
	if err := e.client.Unbind(ctx, e.Vhost, b); err != nil {
		return fmt.Errorf("delete binding %q: %w", b, err)
	}
	return nil
}

func (e *execution) removePolicy(ctx context.Context, policy topology.NamedPolicy) error {
	e.undo.add("restore policy "+policy.Name, e.putBack(policy))
	if err := e.client.DeletePolicy(ctx, e.Vhost, policy.Name); err != nil {
		return fmt.Errorf("delete policy %q: %w", policy.Name, err)
	}
	return nil
}

func (e *execution) removeExchange(ctx context.Context, name string) error {
	if err := e.client.DeleteExchange(ctx, e.Vhost, name); err != nil {
		return fmt.Errorf("delete exchange %q: %w", name, err)
	}
	return nil
}

// shut deletes an exchange that comes back with every binding it had if a later step fails.
func (e *execution) shut(ctx context.Context, name string) error {
	exchange, bindings := e.Live.Exchanges[name], e.bindingsOf(name)
	if err := e.requireUnbound(ctx, topology.Topology{Exchanges: map[string]topology.Exchange{name: exchange}}); err != nil {
		return err
	}
	if err := e.note(ctx, name, bindings); err != nil {
		return err
	}
	e.undo.add("restore exchange "+name, func(ctx context.Context) error { return e.bringBack(ctx, name, exchange, bindings) })
	return e.removeExchange(ctx, name)
}

// removeQueue deletes a queue, for good or, if it is re-created, for a moment. If the broker does not
// say whether it did, the queue gets no bindings any more: what it received would be deleted with it.
func (e *execution) removeQueue(ctx context.Context, name string, queue topology.Queue, recreated bool) error {
	err := e.deleteUntilAnswered(ctx, name, queue, recreated)
	switch {
	case err == nil && recreated:
		return nil // its bindings come back
	case err == nil:
		e.deleted[name] = true
		return nil
	case e.deletionUnknown[name]:
		return fmt.Errorf("delete queue %q: the broker did not say whether it was deleted, and it may still be; "+
			"it stays unbound until the next apply: %w", name, err)
	}
	return fmt.Errorf("delete queue %q: %w", name, err)
}

// deleteUntilAnswered deletes a queue to which nothing of others leads, again while the broker does not say whether it did:
// a node that dies in the middle of a deletion leaves a quorum queue without members, of which nothing can be
// proved any more (3.10 to 4.3). What is unbound receives nothing, and the first attempt may take
// effect at any time, so the next one can lose no more than that. But a queue that is created again
// afterwards, here or by an application, may be another one by then.
func (e *execution) deleteUntilAnswered(ctx context.Context, name string, queue topology.Queue, recreated bool) error {
	var deadline time.Time
	once := len(e.deletionUnknown) > 0 || recreated || slices.Contains(e.SharedQueues, name)
	for {
		err := e.requireUnbound(ctx, topology.Topology{Queues: map[string]topology.Queue{name: queue}})
		if err == nil {
			err = e.client.DeleteQueue(ctx, e.Vhost, name, queue.Type)
			switch {
			case err == nil:
				delete(e.deletionUnknown, name)
				return nil
			case broker.IsUnanswered(err):
				e.deletionUnknown[name] = true
			}
		}
		if !e.deletionUnknown[name] || !broker.IsUnanswered(err) || isBound(err) {
			return err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(lookupTime)
		}
		if once || time.Now().After(deadline) || pause(ctx, e.times.Poll) != nil {
			return err
		}
	}
}
