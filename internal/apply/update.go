package apply

import (
	"context"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Update changes what differs. Whatever may be refused comes first: a change that would lose
// messages fails with *KeptError before anything else was touched. What is missing is created
// before anything is deleted. Of the queues that are not wanted any more, those that nobody else
// publishes to are kept if they are not proved to be empty, and the answer says why.
func (a *Applier) Update(ctx context.Context, change Change) (map[string]string, error) {
	do, changes := a.changer(change), topology.Diff(change.Wanted, change.Live)
	if err := do.requireEmpty(ctx, checksOf(pendingDeadLetters, change.HeldIn...)); err != nil {
		return nil, err
	}
	published, own := do.split(changes.Delete.Queues)
	if err := do.requireRemoved(ctx, published); err != nil {
		return nil, err
	}
	if err := do.replaceQueues(ctx, changes.Replace.Queues); err != nil {
		return nil, err
	}
	if err := eachByName(ctx, changes.Replace.Exchanges, do.replaceExchange); err != nil {
		return nil, err
	}
	if err := do.create(ctx, changes.Create); err != nil {
		return nil, err
	}
	early, late := do.overtaking(changes.Delete.Policies)
	if err := do.removePolicies(ctx, early); err != nil {
		return nil, err
	}
	if err := do.writePolicies(ctx, topology.Merge(changes.Create, changes.Update).Policies); err != nil {
		return nil, err
	}
	if err := do.removePolicies(ctx, late); err != nil {
		return nil, err
	}
	if err := each(ctx, do.bindingsWithoutQueues(changes.Delete), do.removeBinding); err != nil {
		return nil, err
	}
	if err := do.sendHeldDeadLetters(ctx); err != nil {
		return nil, err
	}
	kept, err := do.removeQueues(ctx, own, false)
	if err != nil {
		return kept, err
	}
	return kept, eachByName(ctx, changes.Delete.Exchanges, do.removeExchange)
}

// requireRemoved deletes all of the queues, or fails with *KeptError and leaves them as they were.
func (c *changer) requireRemoved(ctx context.Context, queues map[string]topology.Queue) error {
	return c.untilDrained(func() error {
		kept, err := c.removeQueues(ctx, queues, true)
		if err == nil && len(kept) > 0 {
			return &KeptError{Queues: kept}
		}
		return err
	})
}

// split tells queues that others publish to from those that are the owner's alone.
func (c *changer) split(queues map[string]topology.Queue) (published, own map[string]topology.Queue) {
	published, own = maps.Clone(queues), maps.Clone(queues)
	maps.DeleteFunc(published, func(name string, _ topology.Queue) bool { return !slices.Contains(c.Published, name) })
	maps.DeleteFunc(own, func(name string, _ topology.Queue) bool { return slices.Contains(c.Published, name) })
	return published, own
}

// bindingsWithoutQueues lists the bindings to delete that do not go with their queues.
func (c *changer) bindingsWithoutQueues(t topology.Topology) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(t.Bindings), func(b topology.Binding) bool {
		_, withQueue := t.Queues[b.Destination]
		return withQueue
	})
}
