package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// changer changes one vhost and remembers how to undo it.
type changer struct {
	*Client
	journal
	vhost string
	// all is the whole vhost as it was before: what is deleted may have bindings that are not ours.
	all topology.Topology
	// onlyNew refuses objects that exist already: another one's would be taken over.
	onlyNew bool
	// made are the queues that were created.
	made map[string]topology.Queue
}

// write sends one write. If its outcome is unknown, what is on the broker decides; it is never
// repeated blindly.
func (c *changer) write(ctx context.Context, what string, put func() (bool, error), exists func(topology.Topology) bool) error {
	isNew, err := put()
	if err != nil && isUnanswered(err) {
		now, lookupErr := c.List(ctx, c.vhost)
		if lookupErr != nil || !exists(now) {
			return fmt.Errorf("%s: the broker did not say whether it was written, and it may still appear later: %w", what, err)
		}
		isNew, err = true, nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if c.onlyNew && !isNew {
		return fmt.Errorf("%s exists already: somebody created it a moment ago. Import the pipeline, or choose another name", what)
	}
	return nil
}

func (c *changer) createExchange(ctx context.Context, name string, exchange topology.Exchange) error {
	what := fmt.Sprintf("create exchange %q", name)
	err := c.write(ctx, what,
		func() (bool, error) { return c.putExchange(ctx, c.vhost, name, exchange) },
		func(now topology.Topology) bool { _, exists := now.Exchanges[name]; return exists })
	if err == nil {
		c.add("delete exchange "+name, func(ctx context.Context) error { return c.deleteExchange(ctx, c.vhost, name) })
	}
	return err
}

func (c *changer) createQueue(ctx context.Context, name string, queue topology.Queue) error {
	what := fmt.Sprintf("create queue %q", name)
	err := c.write(ctx, what,
		func() (bool, error) { return c.putQueue(ctx, c.vhost, name, queue) },
		func(now topology.Topology) bool { _, exists := now.Queues[name]; return exists })
	if err == nil {
		c.made[name] = queue
	}
	return err
}

func (c *changer) createBinding(ctx context.Context, b topology.Binding) error {
	what := fmt.Sprintf("create binding %q", b)
	// Creating a binding a second time changes nothing, so the broker's answer never tells.
	err := c.write(ctx, what,
		func() (bool, error) { return true, c.bind(ctx, c.vhost, b) },
		func(now topology.Topology) bool {
			return slices.ContainsFunc(now.Bindings, func(have topology.Binding) bool { return have.String() == b.String() })
		})
	if err == nil {
		c.add("delete binding "+b.String(), func(ctx context.Context) error { return c.unbind(ctx, c.vhost, b) })
	}
	return err
}

// writePolicy creates a policy, or writes over one of ours.
func (c *changer) writePolicy(ctx context.Context, name string, policy topology.Policy) error {
	before, existed := c.all.Policies[name]
	what := fmt.Sprintf("write policy %q", name)
	err := c.write(ctx, what,
		func() (bool, error) { return c.putPolicy(ctx, c.vhost, name, policy) },
		func(now topology.Topology) bool { _, exists := now.Policies[name]; return exists })
	if err != nil {
		return err
	}
	c.add("restore policy "+name, func(ctx context.Context) error {
		if !existed {
			return c.deletePolicy(ctx, c.vhost, name)
		}
		_, err := c.putPolicy(ctx, c.vhost, name, before)
		return err
	})
	return nil
}

func (c *changer) removePolicy(ctx context.Context, name string, policy topology.Policy) error {
	if err := c.deletePolicy(ctx, c.vhost, name); err != nil {
		return fmt.Errorf("delete policy %q: %w", name, err)
	}
	c.add("restore policy "+name, func(ctx context.Context) error {
		_, err := c.putPolicy(ctx, c.vhost, name, policy)
		return err
	})
	return nil
}

func (c *changer) removeBinding(ctx context.Context, b topology.Binding) error {
	if err := c.unbind(ctx, c.vhost, b); err != nil {
		return fmt.Errorf("delete binding %q: %w", b, err)
	}
	c.add("restore binding "+b.String(), func(ctx context.Context) error { return c.bind(ctx, c.vhost, b) })
	return nil
}

// eachByName calls with the entries of a map in the order of their names, until one fails.
func eachByName[T any](ctx context.Context, objects map[string]T, call func(context.Context, string, T) error) error {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if err := call(ctx, name, objects[name]); err != nil {
			return err
		}
	}
	return nil
}

func each[T any](ctx context.Context, objects []T, call func(context.Context, T) error) error {
	for _, object := range objects {
		if err := call(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
