package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// PutExchange declares an exchange and reports whether it is new.
func (c *Client) PutExchange(ctx context.Context, vhost, name string, exchange topology.Exchange) (bool, error) {
	values := maps.Clone(orNone(exchange.Arguments))
	return c.declare(ctx, vhost, "exchanges", name, map[string]any{
		"type":        exchange.Type,
		"durable":     !exchange.Transient,
		"auto_delete": exchange.AutoDelete,
		"internal":    exchange.Internal,
		"arguments":   values,
	}, values, "alternate-exchange")
}

// declare writes a queue or an exchange. An argument that names an exchange takes further rights, and the broker does not say which one is
// missing. But it refuses for want of configure before it reads the argument, and otherwise creates nothing if that is wrong.
func (c *Client) declare(ctx context.Context, vhost, kind, name string, body, arguments map[string]any, reference string) (bool, error) {
	isNew, err := c.put(ctx, path(kind, vhost, name), body)
	answer, is := errors.AsType[*Error](err)
	if to, refers := arguments[reference].(string); refers && is && strings.HasPrefix(answer.Reason, noAccess) {
		rights := fmt.Sprintf("read on %q and write on %q", name, cmp.Or(to, "amq.default"))
		arguments[reference] = 0
		if _, wrong := c.put(ctx, path(kind, vhost, name), body); IsUnauthorized(wrong) {
			rights = fmt.Sprintf("configure on %q, and %s for its %s,", name, rights, reference)
		}
		answer.Reason = noAccess + " " + needs(rights, vhost)
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
