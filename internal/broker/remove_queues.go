package broker

import (
	"context"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// removeQueues deletes queues that are proved to be empty. Every binding that leads to them is
// removed first, so that nothing arrives between the proof and the deletion. A queue that is not
// proved to be empty is bound again and kept, and the answer says why; with allOrNone, a single one
// of them keeps all. Queues that visibly hold messages are not even unbound.
func (c *changer) removeQueues(ctx context.Context, queues map[string]topology.Queue, allOrNone bool) (map[string]string, error) {
	kept, err := c.lastingHoldings(ctx, c.vhost, slices.Collect(maps.Keys(queues)), nil)
	if err != nil || len(kept) == len(queues) || (allOrNone && len(kept) > 0) {
		return kept, err
	}
	candidates := without(queues, kept)
	if err := each(ctx, c.bindingsTo(candidates), c.removeBinding); err != nil {
		return nil, err
	}
	if err := pause(ctx, settleTime); err != nil {
		return nil, err
	}
	against, err := c.proveEmpty(ctx, c.vhost, judging(content, slices.Collect(maps.Keys(candidates))...))
	if err != nil {
		return nil, err
	}
	maps.Copy(kept, against)
	if allOrNone && len(kept) > 0 {
		return kept, nil
	}
	proved := without(candidates, against)
	if err := eachByName(ctx, proved, c.removeQueue); err != nil {
		return nil, err
	}
	return kept, each(ctx, c.bindingsTo(without(candidates, proved)), c.createBinding)
}

// without returns the queues that the other map does not name.
func without[T any](queues map[string]topology.Queue, names map[string]T) map[string]topology.Queue {
	rest := maps.Clone(queues)
	maps.DeleteFunc(rest, func(name string, _ topology.Queue) bool { _, named := names[name]; return named })
	return rest
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
