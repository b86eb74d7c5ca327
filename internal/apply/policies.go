package apply

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// replicationTime is how long the nodes of a cluster may take to learn of a policy.
const replicationTime = time.Second

// writePolicies writes policies in their order. In clusters from RabbitMQ 4.0 on, those with a dead-letter exchange are
// first written with other content that has no effect: a quorum queue that learns of its policy looks the exchange up on
// its leader's node, which may not know the policy yet, and keeps to what it found until the policy changes again. All
// its dead letters would be held until then (rabbit_fifo_dlx_worker:lookup_topology; seen on 4.3.6, with Khepri).
func (e *execution) writePolicies(ctx context.Context, policies []topology.NamedPolicy) error {
	var first, again []topology.NamedPolicy
	for _, policy := range policies {
		if _, deadLetters := policy.Definition["dead-letter-exchange"]; deadLetters {
			again = append(again, policy)
			policy.Policy = harmlesslyChanged(policy.Policy)
		}
		first = append(first, policy)
	}
	if e.All.Nodes < 2 || e.All.Version.Before(4, 0) || len(again) == 0 {
		return each(ctx, policies, e.writePolicy)
	}
	if err := each(ctx, first, e.writePolicy); err != nil {
		return err
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

// harmlesslyChanged is the policy with other content that has no effect.
func harmlesslyChanged(policy topology.Policy) topology.Policy {
	policy.Definition = maps.Clone(policy.Definition)
	length, isLimited := policy.Definition["max-length"].(int64)
	if !isLimited {
		length = topology.UnreachableLength
	}
	policy.Definition["max-length"] = length + 1
	return policy
}
