package broker

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// PutExchange declares an exchange and reports whether it is new.
func (c *Client) PutExchange(ctx context.Context, vhost, name string, exchange topology.Exchange) (bool, error) {
	values := maps.Clone(orNone(exchange.Arguments))
	return c.declare(ctx, path("exchanges", vhost, name), name, map[string]any{
		"type":        exchange.Type,
		"durable":     !exchange.Transient,
		"auto_delete": exchange.AutoDelete,
		"internal":    exchange.Internal,
		"arguments":   values,
	}, values, "alternate-exchange")
}

// rightsKey marks the context of a request that takes other rights than configure on its object, which are its value.
type rightsKey struct{}

// declare writes a queue or an exchange. An argument that names an exchange takes further rights. The broker does not say which one is
// missing. But it refuses for want of configure before it reads the argument, and otherwise creates nothing if that is wrong.
func (c *Client) declare(ctx context.Context, path, name string, body, arguments map[string]any, reference string) (bool, error) {
	to, refers := arguments[reference].(string)
	if !refers {
		return c.put(ctx, path, body)
	}
	further := fmt.Sprintf("read on %q and write on %q", name, cmp.Or(to, "amq.default"))
	isNew, err := c.put(context.WithValue(ctx, rightsKey{}, further), path, body)
	if IsUnauthorized(err) {
		arguments[reference] = 0
		all := fmt.Sprintf("configure on %q, and %s for its %s,", name, further, reference)
		if _, wrong := c.put(context.WithValue(ctx, rightsKey{}, all), path, body); IsUnauthorized(wrong) {
			return false, wrong
		}
	}
	return isNew, err
}

// missing leaves out the error that an object does not exist.
func missing(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// DeleteExchange deletes an exchange. A missing one counts as deleted.
func (c *Client) DeleteExchange(ctx context.Context, vhost, name string) error {
	return c.delete(ctx, vhost, path("exchanges", vhost, name))
}

// DeleteUnusedExchange is DeleteExchange if no binding leads from the exchange, which the broker checks.
func (c *Client) DeleteUnusedExchange(ctx context.Context, vhost, name string) error {
	return c.delete(ctx, vhost, path("exchanges", vhost, name)+"?if-unused=true")
}

// orNone returns the arguments, or an empty object, because brokers do not accept null.
func orNone(arguments topology.Arguments) topology.Arguments {
	if arguments == nil {
		return topology.Arguments{}
	}
	return arguments
}
