package broker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// writePolicies creates policies and writes over those of the owner. A policy that stands behind
// another must not beat it in between, or dead letters that are held are deleted: priorities fall from
// the weakest policy up, and anything else is written from the strongest down.
func (c *changer) writePolicies(ctx context.Context, policies map[string]topology.Policy) error {
	falls := func(name string) bool {
		have, exists := c.Live.Policies[name]
		return exists && policies[name].Priority < have.Priority
	}
	order := slices.Sorted(maps.Keys(policies))
	slices.SortStableFunc(order, func(a, b string) int {
		switch {
		case falls(a) && falls(b):
			return cmp.Compare(policies[a].Priority, policies[b].Priority)
		case falls(a):
			return -1
		case falls(b):
			return 1
		}
		return cmp.Compare(policies[b].Priority, policies[a].Priority)
	})
	return each(ctx, order, func(ctx context.Context, name string) error { return c.writePolicy(ctx, name, policies[name]) })
}

// writePolicy creates a policy, or writes over one of the owner's.
func (c *changer) writePolicy(ctx context.Context, name string, policy topology.Policy) error {
	written, err := c.write(ctx, fmt.Sprintf("write policy %q", name),
		func() (bool, error) { return c.putPolicyToStay(ctx, name, policy) },
		func(now topology.Topology) bool {
			have, exists := now.Policies[name]
			return exists && have.Equal(policy)
		})
	if written {
		c.undo.add("delete policy "+name, func(ctx context.Context) error { return c.deletePolicy(ctx, c.Vhost, name) })
	}
	return err
}

// putPolicyToStay writes a policy so that it takes effect. Before 4.0, a write that meets a queue's
// leader election is listed but never applied, and the same content again does not mend it; changed
// content does. So clusters of those versions get two writes.
func (c *changer) putPolicyToStay(ctx context.Context, name string, policy topology.Policy) (bool, error) {
	if !c.All.Version.Before(4, 0) || c.All.Nodes < 2 {
		return c.putPolicy(ctx, c.Vhost, name, policy)
	}
	isNew, err := c.putPolicy(ctx, c.Vhost, name, harmlesslyChanged(policy))
	if err != nil {
		return isNew, err
	}
	// A cancellation must not leave the harmless change behind.
	_, err = c.putPolicy(context.WithoutCancel(ctx), c.Vhost, name, policy)
	return isNew, err
}

// harmlesslyChanged is the policy with other content that has no effect.
func harmlesslyChanged(policy topology.Policy) topology.Policy {
	const unreachable = int64(999_999_999)
	policy.Definition = maps.Clone(policy.Definition)
	length, isLimited := policy.Definition["max-length"].(int64)
	if !isLimited {
		length = unreachable
	}
	policy.Definition["max-length"] = length + 1
	return policy
}

// removePolicies deletes policies, the weakest first.
func (c *changer) removePolicies(ctx context.Context, policies map[string]topology.Policy) error {
	order := slices.Sorted(maps.Keys(policies))
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(policies[a].Priority, policies[b].Priority) })
	return each(ctx, order, func(ctx context.Context, name string) error { return c.removePolicy(ctx, name, policies[name]) })
}

// removePolicy remembers the policy before it is deleted: an answer that got lost is no sign that
// nothing happened, and putting back what is still there changes nothing. The same holds for bindings.
func (c *changer) removePolicy(ctx context.Context, name string, policy topology.Policy) error {
	c.undo.add("restore policy "+name, func(ctx context.Context) error {
		_, err := c.putPolicyToStay(ctx, name, policy)
		return err
	})
	if err := c.deletePolicy(ctx, c.Vhost, name); err != nil {
		return fmt.Errorf("delete policy %q: %w", name, err)
	}
	return nil
}
