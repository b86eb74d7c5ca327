package broker

import (
	"context"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// request is a read and where its answer goes.
type request struct {
	path string
	into any
}

// List reads every exchange, queue, binding and policy of a vhost, with one request per kind, and
// what else decides how they behave. It fails with IsNotFound if the vhost does not exist or may not
// be seen.
func (c *Client) List(ctx context.Context, vhost string) (topology.Vhost, error) {
	var (
		all       topology.Vhost
		exchanges []rabbithole.ExchangeInfo
		queues    []QueueInfo
		bindings  []rabbithole.BindingInfo
		policies  []rabbithole.Policy
		operator  []rabbithole.Policy
	)
	listings := []request{
		{path("exchanges", vhost) + "?disable_stats=true", &exchanges},
		{path("queues", vhost) + "?disable_stats=true", &queues},
		{path("bindings", vhost), &bindings},
		{path("policies", vhost), &policies},
		{path("operator-policies", vhost), &operator},
	}
	if err := c.getAll(ctx, listings); err != nil {
		return all, err
	}
	all.Name = vhost
	all.Exchanges = make(map[string]topology.Exchange, len(exchanges))
	for _, e := range exchanges {
		all.Exchanges[e.Name] = exchangeFrom(e)
	}
	all.Queues = make(map[string]topology.Queue, len(queues))
	for _, q := range queues {
		all.Queues[q.Name] = q.queue()
	}
	for _, b := range bindings {
		all.Bindings = append(all.Bindings, bindingFrom(b))
	}
	all.Policies, all.OperatorPolicies = policiesFrom(policies), policiesFrom(operator)
	known, err := c.askCluster(ctx)
	all.Version, all.Nodes = known.version, known.nodes
	return all, err
}

// getAll sends all requests at once. What went wrong in one of them mostly did in all, so one error is
// enough.
func (c *Client) getAll(ctx context.Context, requests []request) error {
	var group errgroup.Group
	for _, r := range requests {
		group.Go(func() error { return c.get(ctx, r.path, r.into) })
	}
	return group.Wait()
}
