package broker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// cluster has the facts that do not depend on the vhost: the broker's version and name, and its number of nodes.
type cluster struct {
	version       topology.Version
	product       string // "" until the broker has answered
	exchangeTypes []string
	queues        int
	nodes         int
	flags         map[string]bool // see [topology.Vhost]
}

// overview is the management API's description of the broker. Before 2.6, LavinMQ has no product name.
type overview struct {
	RabbitMQ string `json:"rabbitmq_version"`
	LavinMQ  string `json:"lavinmq_version"`
	Product  string `json:"product_name"`
	Types    []struct {
		Name string `json:"name"`
	} `json:"exchange_types"`
	Totals struct {
		Queues int `json:"queues"`
	} `json:"object_totals"`
}

// found names a broker that is not RabbitMQ.
func (o overview) found() string {
	switch {
	case o.LavinMQ != "":
		return "LavinMQ " + o.LavinMQ
	case o.Product != "":
		return o.Product
	}
	return "a broker without rabbitmq_version in its overview"
}

// askCluster asks until the facts are known, the number of nodes only if it counts them, and then keeps the answers.
// Every user of the API can send both requests. If the broker is not RabbitMQ, the error is *product.OtherError.
func (c *Client) askCluster(ctx context.Context, countNodes bool) (cluster, error) {
	if err := c.clusterTurn.acquire(ctx); err != nil {
		return cluster{}, err
	}
	defer c.clusterTurn.release()
	if err := c.askRelease(ctx); err != nil || !countNodes || c.cluster.nodes > 0 {
		return c.cluster, err
	}
	vhosts, err := c.vhosts(ctx)
	if err != nil {
		return cluster{}, err
	}
	c.cluster.count(vhosts)
	return c.cluster, nil
}

// count sets the number of nodes. The state of a vhost is that on each node.
func (c *cluster) count(vhosts vhostList) {
	for _, v := range vhosts {
		c.nodes = max(c.nodes, len(v.ClusterState))
	}
}

// noteNodes keeps the number of nodes from a list that was read for another purpose.
func (c *Client) noteNodes(ctx context.Context, vhosts vhostList) error {
	if err := c.clusterTurn.acquire(ctx); err != nil {
		return err
	}
	defer c.clusterTurn.release()
	if c.cluster.product != "" && c.cluster.nodes == 0 {
		c.cluster.count(vhosts)
	}
	return nil
}

// Product asks once for the broker's name. If the broker is not RabbitMQ, it returns *product.OtherError.
func (c *Client) Product(ctx context.Context) (string, error) {
	known, err := c.askCluster(ctx, false)
	return known.product, err
}

// listTimeout returns how long the answer to a list can take. A broker that does not tell its number of queues fails on
// the list, too.
func (c *Client) listTimeout(ctx context.Context) time.Duration {
	known, _ := c.askCluster(ctx, false)
	return min(requestTimeout+time.Duration(known.queues)*timeoutPerQueue, longestTimeout)
}

// askRelease asks until the version is known. The caller must hold the turn. Some brokers imitate the management API,
// but none reports a RabbitMQ version.
func (c *Client) askRelease(ctx context.Context) error {
	if c.cluster.product != "" {
		return nil
	}
	var info overview
	const wanted = "?disable_stats=true&columns=rabbitmq_version,product_name,exchange_types.name,object_totals"
	if err := c.get(ctx, path("overview")+wanted, &info); err != nil {
		return err
	}
	if info.RabbitMQ == "" || product.IsOther(info.Product) {
		return &product.OtherError{Found: info.found()}
	}
	var version topology.Version
	if n, err := fmt.Sscanf(info.RabbitMQ, "%d.%d.%d", &version.Major, &version.Minor, &version.Patch); n < 2 { // a patch may be missing
		return fmt.Errorf("the broker's version %q is not of the form 4.3.6: %w", info.RabbitMQ, err)
	}
	flags, err := c.featureFlags(ctx, version)
	if err != nil {
		return err
	}
	c.cluster = cluster{version: version, flags: flags, product: cmp.Or(info.Product, product.RabbitMQ), queues: info.Totals.Queues}
	for _, of := range info.Types {
		c.cluster.exchangeTypes = append(c.cluster.exchangeTypes, of.Name)
	}
	return nil
}

// featureFlags are the broker's feature flags, nil if the user may not read them, or if the release has all that matter.
func (c *Client) featureFlags(ctx context.Context, version topology.Version) (map[string]bool, error) {
	if version.Before(3, 13) || !version.Before(4, 0) {
		return nil, nil
	}
	var listed []struct{ Name, State string }
	if err := c.get(ctx, path("feature-flags"), &listed); err != nil {
		if IsUnauthorized(err) {
			err = nil
		}
		return nil, err
	}
	flags := map[string]bool{}
	for _, flag := range listed {
		flags[flag.Name] = flag.State == "enabled"
	}
	return flags, nil
}

// ExchangeTypes asks once for the types that an exchange can have.
func (c *Client) ExchangeTypes(ctx context.Context) ([]string, error) {
	known, err := c.askCluster(ctx, false)
	return known.exchangeTypes, err
}
