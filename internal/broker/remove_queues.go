package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// removeQueues deletes queues that are proved to be empty. Every binding that leads to them is
// removed first, so that nothing arrives between the proof and the deletion. A queue that is not
// proved to be empty is bound again and kept, and the answer says why; with allOrNone, a single one
// of them keeps all.
func (c *changer) removeQueues(ctx context.Context, queues map[string]topology.Queue, allOrNone bool) (map[string]string, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	names := slices.Sorted(maps.Keys(queues))
	if err := each(ctx, c.bindingsTo(queues), c.removeBinding); err != nil {
		return nil, err
	}
	if err := pause(ctx, settleTime); err != nil {
		return nil, err
	}
	kept, err := c.proveEmpty(ctx, c.vhost, names, content)
	if err != nil {
		return nil, err
	}
	if allOrNone && len(kept) > 0 {
		return kept, nil
	}
	for _, name := range names {
		if kept[name] == "" {
			if err := c.deleteQueue(ctx, c.vhost, name, queues[name].Type); err != nil {
				return nil, fmt.Errorf("delete queue %q: %w", name, err)
			}
			continue
		}
		rebind := c.bindingsTo(map[string]topology.Queue{name: queues[name]})
		if err := each(ctx, rebind, c.createBinding); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// bindingsTo lists the bindings that lead to the queues, whoever made them. The default exchange
// has a binding to every queue, which cannot be removed.
func (c *changer) bindingsTo(queues map[string]topology.Queue) []topology.Binding {
	var found []topology.Binding
	for _, b := range c.all.Bindings {
		if _, leads := queues[b.Destination]; leads && !b.ToExchange && b.Source != "" {
			found = append(found, b)
		}
	}
	return found
}

// bindingsOf lists the bindings that come from or lead to an exchange.
func (c *changer) bindingsOf(exchange string) []topology.Binding {
	var found []topology.Binding
	for _, b := range c.all.Bindings {
		if b.Source == exchange || (b.ToExchange && b.Destination == exchange) {
			found = append(found, b)
		}
	}
	return found
}
