package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// writePolicies creates policies and writes over those of the owner, in an order in which no queue is
// without its policy for a moment, and none that stands behind another beats it: either would delete
// the dead letters that the queue holds. So what takes over from another policy comes first, then
// priorities fall from the weakest policy up, then the rest is written from the strongest down, and
// what only stands behind comes last, what receives queues before what may let go of them.
func (c *changer) writePolicies(ctx context.Context, policies map[string]topology.Policy) error {
	order := slices.Sorted(maps.Keys(policies))
	slices.SortStableFunc(order, func(a, b string) int {
		phaseA, phaseB := c.phase(a, policies), c.phase(b, policies)
		weakestFirst := cmp.Compare(policies[a].Priority, policies[b].Priority)
		if phaseA == falling && phaseB == falling {
			return weakestFirst
		}
		return cmp.Or(cmp.Compare(phaseA, phaseB), -weakestFirst, c.receivingFirst(a, b))
	})
	return c.withStableLeaders(ctx, policies, func(ctx context.Context) error {
		return each(ctx, order, func(ctx context.Context, name string) error { return c.writePolicy(ctx, name, policies[name]) })
	})
}

// receivingFirst sorts policies that are not there yet before those that are, which may let go of queues.
// Where queues are spread over several, those with higher numbers receive what the others let go of; they
// are there already if a change that was to delete them was interrupted.
func (c *changer) receivingFirst(a, b string) int {
	_, aExists := c.Live.Policies[a]
	_, bExists := c.Live.Policies[b]
	switch {
	case aExists == bExists:
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a))
	case bExists:
		return -1
	}
	return 1
}

// Phases of writing policies.
const (
	takingOver = iota
	falling
	changing
	standingBehind
)

func (c *changer) phase(name string, policies map[string]topology.Policy) int {
	have, exists := c.Live.Policies[name]
	switch {
	case exists && policies[name].Priority < have.Priority:
		return falling
	case policies[name].Priority < strongest(policies):
		return standingBehind
	case exists:
		return changing
	}
	return takingOver
}

// writePolicy creates a policy, or writes over one of the owner's.
func (c *changer) writePolicy(ctx context.Context, name string, policy topology.Policy) error {
	written, err := c.write(ctx, fmt.Sprintf("write policy %q", name),
		func() (bool, error) {
			isNew, err := c.client.PutPolicy(ctx, c.Vhost, name, policy)
			_, again := c.made.Policies[name]
			return isNew || again, err
		},
		func(now topology.Topology) bool {
			have, exists := now.Policies[name]
			return exists && have.Equal(policy)
		})
	if written {
		c.remember(func(made *topology.Topology) { made.Policies[name] = policy })
	}
	return err
}

// sendHeldDeadLetters makes quorum queues try again at once to send dead letters that had no route:
// they do when their policy changes, and otherwise only after three to six minutes.
func (c *changer) sendHeldDeadLetters(ctx context.Context) error {
	if !c.Rerouted {
		return nil
	}
	// A cancellation must not leave the changed content behind.
	ctx = context.WithoutCancel(ctx)
	if err := c.putChanged(ctx, c.Wanted.Policies); err != nil {
		return err
	}
	return c.withStableLeaders(ctx, c.Wanted.Policies, func(ctx context.Context) error {
		return eachByName(ctx, c.Wanted.Policies, func(ctx context.Context, name string, policy topology.Policy) error {
			_, err := c.client.PutPolicy(ctx, c.Vhost, name, policy)
			return err
		})
	})
}

// putChanged writes policies with other content that has no effect.
func (c *changer) putChanged(ctx context.Context, policies map[string]topology.Policy) error {
	return eachByName(ctx, policies, func(ctx context.Context, name string, policy topology.Policy) error {
		if _, err := c.client.PutPolicy(ctx, c.Vhost, name, harmlesslyChanged(policy)); err != nil {
			return fmt.Errorf("write policy %q: %w", name, err)
		}
		return nil
	})
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

// overtaking tells apart those of the policies to delete that stand behind others now, and would beat
// them as soon as their priority falls: they have to go before. All others go after what replaces them.
func (c *changer) overtaking(deleted map[string]topology.Policy) (early, late map[string]topology.Policy) {
	now, then := strongest(c.Live.Policies), strongest(c.Wanted.Policies)
	early, late = maps.Clone(deleted), maps.Clone(deleted)
	overtakes := func(_ string, p topology.Policy) bool { return p.Priority < now && p.Priority >= then }
	maps.DeleteFunc(early, func(name string, p topology.Policy) bool { return !overtakes(name, p) })
	maps.DeleteFunc(late, overtakes)
	return early, late
}

// strongest is the highest priority of the policies.
func strongest(policies map[string]topology.Policy) int {
	highest := 0
	for _, policy := range policies {
		highest = max(highest, policy.Priority)
	}
	return highest
}

// removePolicies deletes policies, the weakest first.
func (c *changer) removePolicies(ctx context.Context, policies map[string]topology.Policy) error {
	order := slices.Sorted(maps.Keys(policies))
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(policies[a].Priority, policies[b].Priority) })
	return c.withStableLeaders(ctx, policies, func(ctx context.Context) error {
		return each(ctx, order, func(ctx context.Context, name string) error { return c.removePolicy(ctx, name, policies[name]) })
	})
}

// removePolicy remembers the policy before it is deleted: an answer that got lost is no sign that
// nothing happened, and putting back what is still there changes nothing. The same holds for bindings.
func (c *changer) removePolicy(ctx context.Context, name string, policy topology.Policy) error {
	c.undo.add("restore policy "+name, func(ctx context.Context) error {
		_, err := c.client.PutPolicy(ctx, c.Vhost, name, policy)
		return err
	})
	if err := c.client.DeletePolicy(ctx, c.Vhost, name); err != nil {
		return fmt.Errorf("delete policy %q: %w", name, err)
	}
	return nil
}
