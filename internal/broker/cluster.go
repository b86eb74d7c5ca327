package broker

import (
	"context"
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// cluster is what does not depend on the vhost: the broker's version and the number of its nodes.
type cluster struct {
	version topology.Version
	nodes   int
}

// askCluster asks until the nodes are known, and then no more in the client's life. Both requests are
// open to every user of the API.
func (c *Client) askCluster(ctx context.Context) (cluster, error) {
	if err := c.clusterTurn.acquire(ctx); err != nil {
		return cluster{}, err
	}
	defer c.clusterTurn.release()
	if c.cluster != (cluster{}) {
		return c.cluster, nil
	}
	version, err := c.askVersion(ctx)
	if err != nil {
		return cluster{}, err
	}
	vhosts, err := c.vhosts(ctx)
	if err != nil {
		return cluster{}, err
	}
	known := cluster{version: version}
	for _, v := range vhosts {
		known.nodes = max(known.nodes, len(v.ClusterState))
	}
	if known.nodes > 0 {
		c.cluster = known
	}
	return known, nil
}

func (c *Client) askVersion(ctx context.Context) (topology.Version, error) {
	var info struct {
		RabbitMQ string `json:"rabbitmq_version"`
	}
	if err := c.get(ctx, path("overview")+"?disable_stats=true&columns=rabbitmq_version", &info); err != nil {
		return topology.Version{}, err
	}
	var version topology.Version
	if n, err := fmt.Sscanf(info.RabbitMQ, "%d.%d.%d", &version.Major, &version.Minor, &version.Patch); n < 2 { // a patch may be missing
		return topology.Version{}, fmt.Errorf("the broker's version %q is not of the form 4.3.6: %w", info.RabbitMQ, err)
	}
	return version, nil
}
