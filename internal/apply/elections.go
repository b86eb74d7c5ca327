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
	// steadyTime is how long to wait for queues to have leaders that stay.
	steadyTime = time.Minute
	// leaderTime is how long a leader may be dead before the broker says that there is none.
	leaderTime = time.Second
)

// errElections says that a policy may have been written for nothing.
var errElections = errors.New("queues elected leaders meanwhile; before RabbitMQ 4.0 a policy that is written then never takes effect. Apply again when the cluster is at rest")

// withStableLeaders makes changes of policies take effect. Before 4.0, one that meets a queue's leader
// election is listed but never applied, and only other content mends it. So in clusters of those
// versions it is made as long as the leaders are known and the same before and after, and until then
// repeated, with other content in between. If that does not help, the other content stays, so that
// the next plan shows it.
func (c *changer) withStableLeaders(ctx context.Context, policies map[string]topology.Policy, change func(context.Context) error) error {
	if !c.All.Version.Before(4, 0) || c.All.Nodes < 2 || len(policies) == 0 {
		return change(ctx)
	}
	for deadline := time.Now().Add(steadyTime); ; {
		before, err := c.awaitLeaders(ctx, policies, deadline)
		if err != nil {
			return err
		}
		if err := change(ctx); err != nil {
			return err
		}
		if err := pause(ctx, leaderTime); err != nil {
			return err
		}
		after, err := c.leaders(ctx, policies)
		if err != nil || maps.Equal(before, after) {
			return err
		}
		if _, err := c.awaitLeaders(ctx, policies, deadline); err != nil {
			return errors.Join(err, c.putChanged(ctx, policies))
		}
		if err := c.putChanged(ctx, policies); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errElections
		}
	}
}

func (c *changer) awaitLeaders(ctx context.Context, policies map[string]topology.Policy, deadline time.Time) (map[string]string, error) {
	for {
		leaders, err := c.leaders(ctx, policies)
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
		if err := pause(ctx, c.times.Poll); err != nil {
			return nil, err
		}
	}
}

// leaders are the leaders of the quorum queues that the policies match, "" for one that has none.
func (c *changer) leaders(ctx context.Context, policies map[string]topology.Policy) (map[string]string, error) {
	queues, err := c.client.Queues(ctx, c.Vhost)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, queue := range queues {
		for _, policy := range policies {
			if matches, err := policy.AppliesTo(queue.Name, queue.Type); err == nil && matches && queue.Type == topology.Quorum {
				found[queue.Name] = queue.Leader
			}
		}
	}
	return found, nil
}
