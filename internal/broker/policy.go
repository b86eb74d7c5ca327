package broker

import (
	"context"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Where the API has policies and operator policies.
const (
	policyPath   = "policies"
	operatorPath = "operator-policies"
)

// PutPolicy writes a policy and reports whether it is new.
func (c *Client) PutPolicy(ctx context.Context, vhost, name string, policy topology.Policy) (bool, error) {
	return c.putPolicy(ctx, policyPath, vhost, name, policy)
}

// PutOperatorPolicy writes an operator policy and reports whether it is new.
func (c *Client) PutOperatorPolicy(ctx context.Context, vhost, name string, policy topology.Policy) (bool, error) {
	return c.putPolicy(ctx, operatorPath, vhost, name, policy)
}

func (c *Client) putPolicy(ctx context.Context, of, vhost, name string, policy topology.Policy) (bool, error) {
	if err := c.policyWrites.acquire(ctx); err != nil {
		return false, err
	}
	defer c.policyWrites.release()
	return c.put(ctx, path(of, vhost, name), map[string]any{
		"pattern":    policy.Pattern,
		"apply-to":   policy.ApplyTo,
		"priority":   policy.Priority,
		"definition": policy.Definition,
	})
}

// DeletePolicy deletes a policy. A missing one counts as deleted.
func (c *Client) DeletePolicy(ctx context.Context, vhost, name string) error {
	return c.deletePolicy(ctx, policyPath, vhost, name)
}

// DeleteOperatorPolicy deletes an operator policy. A missing one counts as deleted.
func (c *Client) DeleteOperatorPolicy(ctx context.Context, vhost, name string) error {
	return c.deletePolicy(ctx, operatorPath, vhost, name)
}

func (c *Client) deletePolicy(ctx context.Context, of, vhost, name string) error {
	if err := c.policyWrites.acquire(ctx); err != nil {
		return err
	}
	defer c.policyWrites.release()
	return c.delete(ctx, vhost, path(of, vhost, name))
}

func (c *Client) policies(ctx context.Context, path, vhost string) (map[string]topology.Policy, error) {
	all := map[string]topology.Policy{}
	err := visit(ctx, c, path, vhost, func(p rabbithole.Policy) string { return p.Vhost }, func(p rabbithole.Policy) {
		definition := topology.DecodedArguments(p.Definition)
		all[p.Name] = topology.Policy{Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: definition}
	})
	return all, err
}
