package broker

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// listBindings lists the bindings of a vhost.
func (c *Client) listBindings(ctx context.Context, vhost string) ([]rabbithole.BindingInfo, error) {
	bindings, err := list(ctx, c, path("bindings", vhost), vhost, bindingVhost)
	var answer *Error
	if !errors.As(err, &answer) || answer.Status != http.StatusInternalServerError {
		return bindings, err
	}
	if culprit, found := c.unlistable(ctx, vhost); found {
		return nil, fmt.Errorf("%w\n\nRabbitMQ's management API fails over a binding %s, and with it over every list that has it, "+
			"as it does where a routing key has a ~ inside and the binding has arguments, too. "+
			"Nothing can be planned or applied in the vhost until "+
			"it is gone: let whoever made it delete it over AMQP (queue.unbind), and bind again without the ~ or without arguments. "+
			"rabbitmqctl list_bindings shows it", err, culprit)
	}
	return nil, err
}

// unlistable finds a binding that cannot be listed, by the exchange that alone fails to list its own, and by the queue or
// exchange that it leads to.
func (c *Client) unlistable(ctx context.Context, vhost string) (culprit string, found bool) {
	exchanges, err := list(ctx, c, path("exchanges", vhost)+"?disable_stats=true", vhost, exchangeVhost)
	if err != nil {
		return "", false
	}
	queues, err := c.Queues(ctx, vhost)
	if err != nil {
		return "", false
	}
	for _, source := range exchanges {
		if source.Name == "" || !c.fails(ctx, path("exchanges", vhost, source.Name)+"/bindings/source") {
			continue
		}
		for _, queue := range queues {
			if c.fails(ctx, bindingsPath(vhost, topology.Binding{Source: source.Name, Destination: queue.Name})) {
				return fmt.Sprintf("from the exchange %q to the queue %q", source.Name, queue.Name), true
			}
		}
		for _, exchange := range exchanges {
			b := topology.Binding{Source: source.Name, Destination: exchange.Name, ToExchange: true}
			if exchange.Name != "" && c.fails(ctx, bindingsPath(vhost, b)) {
				return fmt.Sprintf("from the exchange %q to the exchange %q", source.Name, exchange.Name), true
			}
		}
	}
	return "", false
}

// fails reports whether the broker cannot answer a read.
func (c *Client) fails(ctx context.Context, path string) bool {
	var answer []struct{}
	_, err := c.do(ctx, http.MethodGet, path, nil, &answer)
	var failure *Error
	return errors.As(err, &failure) && failure.Status == http.StatusInternalServerError
}
