package apply

import (
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
	// steadyTime is how long to wait until queues have stable leaders.
	steadyTime = time.Minute
	// leaderTime is how long a leader can be dead before the broker reports it.
	leaderTime = time.Second
)

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
		var leaderless []string
		for queue, leader := range leaders {
			if leader == "" {
				leaderless = append(leaderless, queue)
			}
		}
		if len(leaderless) == 0 {
			return leaders, nil
		}
		if time.Now().After(deadline) {
			slices.Sort(leaderless)
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
		covered, _ := matcher.Queue(queue.Name, queue.Type)
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
