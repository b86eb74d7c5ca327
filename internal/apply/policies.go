package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	// replicationTime is how long the nodes of a cluster need to learn of a policy.
	replicationTime = time.Second
	// steadyTime is how long to wait until queues have stable leaders.
	steadyTime = time.Minute
	// leaderTime is how long a leader can be dead before the broker reports it.
	leaderTime = time.Second
)

// writePolicies writes policies in their order. In clusters from RabbitMQ 4.0 on, it first writes policies that set a
// dead-letter exchange with other content that has no effect. When a quorum queue learns of its policy, it looks up the
// exchange on its leader's node. If that node does not know the policy yet, the queue keeps the wrong result until the
// policy changes again. It then holds all its dead letters (rabbit_fifo_dlx_worker:lookup_topology; seen on 4.3.6, with
// Khepri).
func (e *execution) writePolicies(ctx context.Context, policies []topology.NamedPolicy) error {
	deadLetters := func(policy topology.NamedPolicy) bool { return has(policy.Definition, "dead-letter-exchange") }
	again := only(policies, deadLetters)
	if e.All.Nodes < 2 || e.All.Version.Before(4, 0) || len(again) == 0 {
		return each(ctx, policies, e.writePolicy)
	}
	for _, policy := range policies {
		if deadLetters(policy) {
			policy.Policy = harmlesslyChanged(policy.Policy)
		}
		if err := e.writePolicy(ctx, policy); err != nil {
			return err
		}
	}
	if err := pause(ctx, replicationTime); err != nil {
		return err
	}
	return each(ctx, again, e.writePolicy)
}

// putChanged writes a policy with other content that has no effect.
func (e *execution) putChanged(ctx context.Context, policy topology.NamedPolicy) error {
	if _, err := e.client.PutPolicy(ctx, e.Vhost, policy.Name, harmlesslyChanged(policy.Policy)); err != nil {
		return fmt.Errorf("write policy %q: %w", policy.Name, err)
	}
	return nil
}

// harmlesslyChanged returns the policy with other content that has no effect.
func harmlesslyChanged(policy topology.Policy) topology.Policy {
	policy.Definition = maps.Clone(policy.Definition)
	length, isLimited := policy.Definition["max-length"].(int64)
	if !isLimited {
		length = topology.UnreachableLength
	}
	policy.Definition["max-length"] = length + 1
	return policy
}

// writeOrder sorts the owner's policies so that no queue loses its policy for a moment and no weaker policy takes
// precedence. Either would delete the queue's pending dead letters. Policies that take over from others come first.
// Then priorities fall, weakest policy first. The higher rank comes first, because it receives the queues that another
// policy releases. All policies want the same priority, and live ones differ only if a change was interrupted.
func (c Change) writeOrder(policies map[string]topology.Policy) []topology.NamedPolicy {
	key := func(p topology.NamedPolicy) []int {
		switch live, exists := c.Live.Policies[p.Name]; {
		case !exists: // it can take over from others
			return []int{0, 0, -p.Rank}
		case p.Priority < live.Priority:
			return []int{1, live.Priority, -p.Rank}
		}
		return []int{2, 0, -p.Rank}
	}
	order := byName(policies)
	slices.SortStableFunc(order, func(a, b topology.NamedPolicy) int { return slices.Compare(key(a), key(b)) })
	return order
}

// overtaking divides the policies to delete. If a policy would take precedence when another policy's priority falls, it
// is deleted early. All others are deleted after their replacements are written.
func (c Change) overtaking(deleted map[string]topology.Policy) (early, late map[string]topology.Policy) {
	return divide(deleted, func(_ string, p topology.Policy) bool {
		for name, now := range c.Live.Policies {
			if then, stays := c.Wanted.Policies[name]; stays && p.Priority < now.Priority && p.Priority >= then.Priority {
				return true
			}
		}
		return false
	})
}

// weakestFirst returns the order of deleting policies, or of narrowing them for good.
func weakestFirst(policies map[string]topology.Policy) []topology.NamedPolicy {
	order := byName(policies)
	slices.SortStableFunc(order, func(a, b topology.NamedPolicy) int { return cmp.Compare(a.Priority, b.Priority) })
	return order
}

func byName(policies map[string]topology.Policy) []topology.NamedPolicy {
	var all []topology.NamedPolicy
	for name, policy := range sorted(policies) {
		all = append(all, topology.NamedPolicy{Name: name, Policy: policy})
	}
	return all
}

// errElections says that a policy can have been written without effect.
var errElections = errors.New("queues elected leaders meanwhile. Before RabbitMQ 4.0, a policy that is written during an election never " +
	"takes effect. Run terraform apply once the leaders are stable")

// withStableLeaders makes policy changes take effect in clusters before 4.0. If a policy is written there during a
// leader election, it is listed but never applied, and only a write with other content repairs it. So it waits until
// all leaders are known, writes, and compares the leaders. If they changed, it writes other content and tries again. If
// that never succeeds, the other content stays, so that the next plan shows it.
func (e *execution) withStableLeaders(ctx context.Context, policies []topology.NamedPolicy, change func(context.Context) error) error {
	if !e.All.Version.Before(4, 0) || e.All.Nodes < 2 || len(policies) == 0 {
		return change(ctx)
	}
	for deadline := time.Now().Add(steadyTime); ; {
		before, err := e.awaitLeaders(ctx, policies, deadline)
		if err != nil {
			return err
		}
		if err := change(ctx); err != nil {
			return err
		}
		if err := pause(ctx, leaderTime); err != nil {
			return err
		}
		after, err := e.leaders(ctx, policies)
		if err != nil || maps.Equal(before, after) {
			return err
		}
		_, err = e.awaitLeaders(ctx, policies, deadline)
		if err := errors.Join(err, e.putInBetween(ctx, policies)); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errElections
		}
	}
}

func (e *execution) awaitLeaders(ctx context.Context, policies []topology.NamedPolicy, deadline time.Time) (map[string]string, error) {
	for {
		leaders, err := e.leaders(ctx, policies)
		if err != nil {
			return nil, err
		}
		leaderless := only(slices.Sorted(maps.Keys(leaders)), func(queue string) bool { return leaders[queue] == "" })
		if len(leaderless) == 0 {
			return leaders, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("these queues have no leader: %s. %w", strings.Join(leaderless, ", "), errElections)
		}
		if err := pause(ctx, e.times.Poll); err != nil {
			return nil, err
		}
	}
}

// leaders returns the leaders of the quorum queues that the policies match. A queue without a leader has "".
func (e *execution) leaders(ctx context.Context, policies []topology.NamedPolicy) (map[string]string, error) {
	queues, err := e.client.Queues(ctx, e.Vhost)
	if err != nil {
		return nil, err
	}
	written, live, found := map[string]topology.Policy{}, map[string]topology.Policy{}, map[string]string{}
	for _, policy := range policies {
		written[policy.Name], live[policy.Name] = policy.Policy, e.Live.Policies[policy.Name]
	}
	matcher := slices.Concat(topology.NewMatcher(written), topology.NewMatcher(live))
	for _, queue := range queues {
		covered, _ := matcher.Queue(queue.Name, queue.Type, e.All.Version)
		if queue.Type == topology.Quorum && len(covered) > 0 {
			found[queue.Name] = queue.Leader
		}
	}
	return found, nil
}

// putInBetween writes the policies with other content that has no effect, last policy first. A policy that releases
// queues gets its live pattern back for this, because only then the broker updates these queues again.
func (e *execution) putInBetween(ctx context.Context, policies []topology.NamedPolicy) error {
	for _, policy := range slices.Backward(policies) {
		if live, exists := e.Live.Policies[policy.Name]; exists && live.Priority == policy.Priority {
			policy.Policy = live
		}
		if err := e.putChanged(ctx, policy); err != nil {
			return err
		}
	}
	return nil
}
