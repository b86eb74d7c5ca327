package broker

import (
	"context"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// PutExchange declares an exchange and reports whether it is new.
func (c *Client) PutExchange(ctx context.Context, vhost, name string, exchange topology.Exchange) (bool, error) {
	return c.put(ctx, path("exchanges", vhost, name), map[string]any{
		"type":        exchange.Type,
		"durable":     !exchange.Transient,
		"auto_delete": exchange.AutoDelete,
		"internal":    exchange.Internal,
		"arguments":   orNone(exchange.Arguments),
	})
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
