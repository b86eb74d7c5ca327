package apply

import (
	"context"
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// right is a permission of the user, and a request that takes it and changes nothing.
type right struct {
	needs   string
	declare func(context.Context) error
}

// requireRights fails if the user may not delete the objects, or not restore the bindings. To declare an object as it is takes the same
// permissions as to delete it (seen on 3.10.8, 4.0.5 and 4.3.6).
func (e *execution) requireRights(ctx context.Context, t topology.Topology) error {
	var rights []right
	for name, exchange := range t.Exchanges {
		rights = append(rights, right{fmt.Sprintf("configure on exchange %q", name), func(ctx context.Context) error {
			_, err := e.client.PutExchange(ctx, e.Vhost, name, exchange)
			return err
		}})
	}
	for name, queue := range t.Queues {
		rights = append(rights, right{fmt.Sprintf("configure on queue %q", name), func(ctx context.Context) error {
			_, err := e.client.PutQueue(ctx, e.Vhost, name, queue)
			return err
		}})
	}
	for _, b := range t.Bindings {
		rights = append(rights, right{fmt.Sprintf("read on %q and write on %q", b.Source, b.Destination), func(ctx context.Context) error {
			return e.client.Bind(ctx, e.Vhost, b)
		}})
	}
	return forEachParallel(ctx, rights, func(ctx context.Context, r right) error {
		if err := r.declare(ctx); broker.IsUnauthorized(err) {
			return fmt.Errorf("the user needs %s: %w", r.needs, err)
		}
		return nil
	})
}
