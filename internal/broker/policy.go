package broker

import (
	"context"
	"net/http"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// PutPolicy writes a policy and reports whether it is new.
func (c *Client) PutPolicy(ctx context.Context, vhost, name string, policy topology.Policy) (bool, error) {
	body := map[string]any{
		"pattern":    policy.Pattern,
		"apply-to":   policy.ApplyTo,
		"priority":   policy.Priority,
		"definition": policy.Definition,
	}
	if err := c.policyWrites.acquire(ctx); err != nil {
		return false, err
	}
	defer c.policyWrites.release()
	status, err := c.do(ctx, http.MethodPut, path("policies", vhost, name), body, nil)
	return status == http.StatusCreated, err
}

// DeletePolicy deletes a policy. A missing one counts as deleted.
func (c *Client) DeletePolicy(ctx context.Context, vhost, name string) error {
	if err := c.policyWrites.acquire(ctx); err != nil {
		return err
	}
	defer c.policyWrites.release()
	return c.delete(ctx, path("policies", vhost, name))
}

func (c *Client) policies(ctx context.Context, path, vhost string) (map[string]topology.Policy, error) {
	found, err := list(ctx, c, path, vhost, func(p rabbithole.Policy) string { return p.Vhost })
	all := make(map[string]topology.Policy, len(found))
	for _, p := range found {
		all[p.Name] = topology.Policy{
			Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: topology.DecodedArguments(p.Definition),
		}
	}
	return all, err
}
