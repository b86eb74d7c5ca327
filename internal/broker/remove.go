package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Remove deletes every object, or none: if messages would be lost, everything is put back and
// *KeptError says where they are.
func (c *Client) Remove(ctx context.Context, change Change) error {
	queues := slices.Collect(maps.Keys(change.Changes.Delete.Queues))
	holdings, err := c.lastingHoldings(ctx, change.Vhost, queues, change.HeldIn)
	if err != nil {
		return err
	}
	if len(holdings) > 0 {
		return &KeptError{Queues: holdings}
	}
	do := c.changer(change)
	if err = do.removeAll(ctx, change); err == nil {
		return nil
	}
	if undone := do.rollback(ctx); undone != nil {
		return fmt.Errorf("%w\n\nNot everything could be put back; the next apply repairs it:\n%w", err, undone)
	}
	return err
}

// removeAll proves twice that nothing is held. The first time policies are still in place, and what
// consumers reject meanwhile ends in a queue that is still bound, so that a refusal loses nothing.
// The second time nothing can arrive any more. The bindings that bring messages back to their work
// queues stay throughout.
func (c *changer) removeAll(ctx context.Context, change Change) error {
	objects := change.Changes.Delete
	names := slices.Collect(maps.Keys(objects.Queues))
	last := map[string]topology.Queue{}
	for _, name := range change.LastUnbound {
		last[name] = objects.Queues[name]
	}

	all := judging(deadLetters, change.HeldIn...)
	maps.Copy(all, judging(content, names...))
	if err := c.unbindAndProve(ctx, without(objects.Queues, last), all); err != nil {
		return err
	}
	if err := eachByName(ctx, objects.Policies, c.removePolicy); err != nil {
		return err
	}
	if err := c.unbindAndProve(ctx, last, judging(content, names...)); err != nil {
		return err
	}
	if err := eachByName(ctx, objects.Queues, c.removeQueue); err != nil {
		return err
	}
	return c.removeRest(ctx, objects)
}

func (c *changer) unbindAndProve(ctx context.Context, unbind map[string]topology.Queue, empty subjects) error {
	if err := each(ctx, c.bindingsTo(unbind), c.removeBinding); err != nil {
		return err
	}
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	return c.requireEmpty(ctx, empty)
}

func (c *changer) removeQueue(ctx context.Context, name string, queue topology.Queue) error {
	if err := c.deleteQueue(ctx, c.vhost, name, queue.Type); err != nil {
		return fmt.Errorf("delete queue %q: %w", name, err)
	}
	return nil
}
