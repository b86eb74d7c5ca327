package broker

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Bind creates a binding. An existing one stays unchanged.
func (c *Client) Bind(ctx context.Context, vhost string, b topology.Binding) error {
	_, err := c.BindKey(ctx, vhost, b)
	return err
}

// BindKey is Bind, and returns the broker's identifier of the binding.
func (c *Client) BindKey(ctx context.Context, vhost string, b topology.Binding) (propertiesKey string, err error) {
	var arguments any = orNone(b.Arguments)
	if len(b.Exact) > 0 {
		arguments = b.Exact
	}
	body := map[string]any{"routing_key": b.RoutingKey, "arguments": arguments}
	answered, err := c.send(ctx, http.MethodPost, bindingsPath(vhost, b), body, nil)
	if err != nil {
		return "", c.explain(ctx, err)
	}
	return url.PathUnescape(answered.location[strings.LastIndex(answered.location, "/")+1:])
}

// Unbind deletes a binding. If the binding was not read from the broker, it looks up the properties key.
func (c *Client) Unbind(ctx context.Context, vhost string, b topology.Binding) error {
	if b.PropertiesKey == "" {
		found, err := c.bindings(ctx, bindingsPath(vhost, b), vhost)
		if err != nil {
			return err
		}
		for _, live := range found {
			if live.String() == b.String() {
				b.PropertiesKey = live.PropertiesKey
			}
		}
		if b.PropertiesKey == "" {
			return nil
		}
	}
	return c.delete(ctx, vhost, bindingsPath(vhost, b)+"/"+url.PathEscape(b.PropertiesKey))
}

// Bindings lists the bindings of a vhost.
func (c *Client) Bindings(ctx context.Context, vhost string) ([]topology.Binding, error) {
	return c.bindings(ctx, path("bindings", vhost), vhost)
}

// BindingsTo lists the bindings to a queue.
func (c *Client) BindingsTo(ctx context.Context, vhost, queue string) ([]topology.Binding, error) {
	return c.bindings(ctx, path("queues", vhost, queue)+"/bindings", vhost)
}

// BindingsToExchange lists the bindings to an exchange.
func (c *Client) BindingsToExchange(ctx context.Context, vhost, exchange string) ([]topology.Binding, error) {
	return c.bindings(ctx, path("exchanges", vhost, exchange)+"/bindings/destination", vhost)
}

// BindingsFrom lists the bindings from an exchange.
func (c *Client) BindingsFrom(ctx context.Context, vhost, exchange string) ([]topology.Binding, error) {
	return c.bindings(ctx, path("exchanges", vhost, exchange)+"/bindings/source", vhost)
}

func (c *Client) bindings(ctx context.Context, path, vhost string) ([]topology.Binding, error) {
	var found []topology.Binding
	err := visit(ctx, c, path, vhost, func(b rabbithole.BindingInfo) string { return b.Vhost }, func(info rabbithole.BindingInfo) {
		if len(info.Arguments) == 0 {
			info.Arguments = nil // an empty map takes room, for each binding of others
		}
		found = append(found, topology.Binding{
			Source:        info.Source,
			Destination:   info.Destination,
			ToExchange:    info.DestinationType == "exchange",
			RoutingKey:    info.RoutingKey,
			Arguments:     topology.DecodedArguments(info.Arguments),
			PropertiesKey: info.PropertiesKey,
			Exact:         info.Arguments,
		})
	})
	return found, err
}

func bindingsPath(vhost string, b topology.Binding) string {
	kind := "q"
	if b.ToExchange {
		kind = "e"
	}
	return path("bindings", vhost, "e", b.Source, kind, b.Destination)
}
