package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// removeQueues deletes queues that are proved to be empty. Every binding that leads to them is
// removed first, so that nothing arrives between the proof and the deletion. A queue that is not
// proved to be empty is bound again and kept, and the answer says why; with allOrNone, a single one
// of them keeps all. Queues that visibly hold messages are not even unbound.
func (c *changer) removeQueues(ctx context.Context, queues map[string]topology.Queue, allOrNone bool) (map[string]string, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	if c.Drain > 0 && !allOrNone {
		return c.drainAndRemove(ctx, queues)
	}
	kept, err := c.lastingContents(ctx, c.contentChecks(queues))
	if err != nil || len(kept) == len(queues) || (allOrNone && len(kept) > 0) {
		return kept, err
	}
	candidates := without(queues, kept)
	remaining := maps.Clone(candidates)
	against, err := c.removeUnbound(ctx, candidates, remaining, allOrNone)
	maps.Copy(kept, against)
	return kept, errors.Join(err, c.bindAgain(ctx, remaining))
}

// drainAndRemove unbinds the queues at once and gives them the time of the change to drain: the
// sidecar, which learns of the new schedule only after the change, takes another delay meanwhile.
func (c *changer) drainAndRemove(ctx context.Context, queues map[string]topology.Queue) (map[string]string, error) {
	remaining := maps.Clone(queues)
	err := c.unbindAll(ctx, queues)
	kept := map[string]string{}
	if err == nil {
		kept, err = c.lastingContents(ctx, c.contentChecks(queues))
	}
	if err == nil {
		var against map[string]string
		against, err = c.removeUnbound(ctx, without(queues, kept), remaining, false)
		maps.Copy(kept, against)
	}
	return kept, errors.Join(err, c.bindAgain(ctx, remaining))
}

// bindAgain gives queues that are still there their bindings back, whatever went wrong.
func (c *changer) bindAgain(ctx context.Context, remaining map[string]topology.Queue) error {
	return notUndone(c.rebind(context.WithoutCancel(ctx), c.bindingsTo(remaining)))
}

// removeUnbound unbinds the queues, proves that they are empty and deletes them. It takes those that
// it deleted out of remaining.
func (c *changer) removeUnbound(ctx context.Context, queues, remaining map[string]topology.Queue, allOrNone bool) (map[string]string, error) {
	if err := c.unbindAll(ctx, queues); err != nil {
		return nil, err
	}
	against, err := c.settleAndProve(ctx, c.Vhost, c.contentChecks(queues), allOrNone)
	if err != nil || (allOrNone && len(against) > 0) {
		return against, err
	}
	var failed []error
	for name, queue := range without(queues, against) {
		if err := c.removeQueue(ctx, name, queue); err != nil {
			failed = append(failed, err)
			continue
		}
		delete(remaining, name)
	}
	return against, errors.Join(failed...)
}

// unbindAll removes every binding to the queues, whoever made it. An exchange that deletes itself
// with its last binding could not be given back, so one of those stops it.
func (c *changer) unbindAll(ctx context.Context, queues map[string]topology.Queue) error {
	bindings := c.bindingsTo(queues)
	for _, b := range bindings {
		if c.All.Exchanges[b.Source].AutoDelete {
			return fmt.Errorf("queue %q is bound to exchange %q, which deletes itself without bindings: remove that binding first", b.Destination, b.Source)
		}
	}
	return each(ctx, bindings, c.removeBinding)
}

// bindingsTo lists the bindings that lead to the queues, whoever made them. The default exchange
// has a binding to every queue, which cannot be removed.
func (c *changer) bindingsTo(queues map[string]topology.Queue) []topology.Binding {
	var found []topology.Binding
	for _, b := range c.All.Bindings {
		if _, leads := queues[b.Destination]; leads && !b.ToExchange && b.Source != "" {
			found = append(found, b)
		}
	}
	return found
}

// contentChecks judges what the queues hold. One that others publish to may not have consumers either:
// they may keep a busy queue empty.
func (c *changer) contentChecks(queues map[string]topology.Queue) emptinessChecks {
	all := emptinessChecks{}
	for name := range queues {
		all[name] = contents
		if slices.Contains(c.Published, name) {
			all[name] = use
		}
	}
	return all
}

// without returns the queues that the other map does not name.
func without[T any](queues map[string]topology.Queue, names map[string]T) map[string]topology.Queue {
	rest := maps.Clone(queues)
	maps.DeleteFunc(rest, func(name string, _ topology.Queue) bool { _, named := names[name]; return named })
	return rest
}
