package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// attaching picks those of the bindings that make a queue the owner's.
func (c Change) attaching(bindings []topology.Binding) step {
	attaches := func(b topology.Binding) bool { return c.AttachedBy != nil && c.AttachedBy(b) != "" }
	return step{do: confirm, bindings: slices.DeleteFunc(slices.Clone(bindings), func(b topology.Binding) bool { return !attaches(b) })}
}

// confirm fails if somebody else has attached one of the queues since the vhost was read. Each of those who do so at the
// same time looks after it wrote, so that the last one at least sees the others. Its own bindings to those queues go again,
// and nothing of the others'.
func (e *execution) confirm(ctx context.Context, bindings []topology.Binding) error {
	return forEachParallel(ctx, bindings, func(ctx context.Context, own topology.Binding) error {
		other, err := e.rival(ctx, own)
		if err != nil || other == "" {
			return err
		}
		return errors.Join(
			fmt.Errorf("queue %q was attached to the pipeline %q at the same time. A queue belongs to one pipeline: remove it from one of the two",
				own.Destination, other),
			notUndone(e.client.Unbind(context.WithoutCancel(ctx), e.Vhost, own)),
		)
	})
}

// rival is another owner who has attached the queue of a binding meanwhile.
func (e *execution) rival(ctx context.Context, own topology.Binding) (string, error) {
	now, err := e.client.BindingsTo(ctx, e.Vhost, own.Destination)
	if err != nil && !broker.IsNotFound(err) {
		return "", fmt.Errorf("whether somebody else attached queue %q at the same time is not known: %w", own.Destination, err)
	}
	for _, b := range now {
		owner := e.AttachedBy(b)
		if owner != "" && owner != e.AttachedBy(own) && !slices.ContainsFunc(e.All.Bindings, b.Equal) {
			return owner, nil
		}
	}
	return "", nil
}
