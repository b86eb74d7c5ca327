package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// visit reads objects of one kind, one at a time. It fails if one of them is not in the vhost.
func visit[T any](ctx context.Context, c *Client, path, vhost string, vhostOf func(T) string, add func(T)) error {
	var foreign error
	err := c.get(withTimeout(ctx, c.listTimeout(ctx)), path, elements[T](func(object T) {
		if other := vhostOf(object); other != vhost {
			foreign = mistaken(path, fmt.Sprintf("the list has an object of the vhost %q", other), lookAtPaths)
			return
		}
		add(object)
	}))
	return cmp.Or(err, foreign)
}

// list reads objects of one kind, as visit does.
func list[T any](ctx context.Context, c *Client, path, vhost string, vhostOf func(T) string) (listed []T, err error) {
	err = visit(ctx, c, path, vhost, vhostOf, func(object T) { listed = append(listed, object) })
	return listed, err
}

func exchangeVhost(e rabbithole.ExchangeInfo) string { return e.Vhost }
func queueVhost(q QueueInfo) string                  { return q.Vhost }

// List reads every exchange, queue, binding and policy of a vhost, with one request for each kind. It also reads the
// facts that decide how they behave. If the vhost does not exist or the user has no access, the error is IsNotFound.
func (c *Client) List(ctx context.Context, vhost string) (topology.Vhost, error) {
	all := topology.Vhost{Name: vhost, Topology: topology.New()}
	_, err := c.askCluster(ctx, false)
	if _, unreached := errors.AsType[*unreachedError](err); unreached { // each list would ask again, one after the other
		return all, err
	}
	// A problem usually affects all requests, so one error is enough.
	var group errgroup.Group
	group.Go(func() error {
		return visit(ctx, c, path("exchanges", vhost)+"?disable_stats=true", vhost, exchangeVhost, func(e rabbithole.ExchangeInfo) {
			all.Exchanges[e.Name] = topology.Exchange{
				Type:       e.Type,
				Transient:  !e.Durable,
				AutoDelete: bool(e.AutoDelete),
				Internal:   e.Internal,
				Arguments:  topology.DecodedArguments(e.Arguments),
			}
		})
	})
	group.Go(func() error {
		return visit(ctx, c, queuesPath(vhost), vhost, queueVhost, func(q QueueInfo) { all.Queues[q.Name] = q.Queue() })
	})
	group.Go(func() (err error) {
		// Bindings show which owner a policy has, and a pipeline writes them first. If they were read before the
		// policies, a new policy could seem to have no owner.
		if all.Policies, err = c.policies(ctx, path(policyPath, vhost), vhost); err == nil {
			all.Bindings, err = c.listBindings(ctx, vhost)
		}
		return err
	})
	group.Go(func() (err error) {
		all.OperatorPolicies, err = c.policies(ctx, path(operatorPath, vhost), vhost)
		return err
	})
	if err := group.Wait(); err != nil {
		return topology.Vhost{}, err
	}
	known, err := c.askCluster(ctx, true)
	all.Version, all.Nodes, all.Flags = known.version, known.nodes, known.flags
	return all, err
}

func (c *Client) listBindings(ctx context.Context, vhost string) ([]topology.Binding, error) {
	bindings, err := c.Bindings(ctx, vhost)
	if answer, is := errors.AsType[*Error](err); !is || answer.Status != http.StatusInternalServerError {
		return bindings, err
	}
	if culprit, found := c.unlistable(ctx, vhost); found {
		return nil, fmt.Errorf("%w\n\nRabbitMQ's management API fails on a binding %s, and on every list with this binding. "+
			"This happens if a binding has arguments and a routing key with a ~ inside. "+
			"Until the binding is gone, nothing can be planned or applied in the vhost. "+
			"Have its owner delete it over AMQP (queue.unbind), and bind again without the ~ or without arguments. "+
			"rabbitmqctl list_bindings shows it", err, culprit)
	}
	return nil, err
}

// unlistable finds a binding that the broker cannot list. First it finds the exchange whose bindings fail, and then the
// binding's destination.
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

// fails reports whether the broker fails to answer a read.
func (c *Client) fails(ctx context.Context, path string) bool {
	var answer []struct{}
	_, err := c.do(ctx, http.MethodGet, path, nil, &answer)
	var failure *Error
	return errors.As(err, &failure) && failure.Status == http.StatusInternalServerError
}
