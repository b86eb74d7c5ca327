package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// replaceQueues deletes queues that are proved to be empty and makes them anew, which is the only
// way to change them. Otherwise it fails with *KeptError and leaves all as they were.
func (c *changer) replaceQueues(ctx context.Context, wanted map[string]topology.Queue) error {
	live := map[string]topology.Queue{}
	for name := range wanted {
		live[name], c.recreated[name] = c.All.Queues[name], true
	}
	if used := c.usedByOthers(live); len(used) > 0 {
		return &KeptError{Queues: used}
	}
	if err := c.requireRemoved(ctx, live); err != nil {
		return err
	}
	// A cancellation must not come between a queue's deletion and its return.
	ctx = context.WithoutCancel(ctx)
	return errors.Join(eachByName(ctx, wanted, c.createQueue), c.rebind(ctx, c.bindingsTo(wanted)))
}

// usedByOthers says of the queues that others publish to which exchanges they are bound to: what is
// published while the queue is away would be lost.
func (c *changer) usedByOthers(queues map[string]topology.Queue) map[string]string {
	used := map[string]string{}
	published, _ := c.split(queues)
	for _, b := range c.bindingsTo(published) {
		if !slices.ContainsFunc(c.Live.Bindings, func(own topology.Binding) bool { return own.String() == b.String() }) {
			used[b.Destination] = fmt.Sprintf("it would have to be made anew, but exchange %q publishes to it; remove that binding first", b.Source)
		}
	}
	return used
}

// replaceExchange deletes an exchange, makes it anew, which is the only way to change it, and gives
// it back every binding it had, foreign ones included. That each of them may be made is found out
// before: making a binding that exists changes nothing.
func (c *changer) replaceExchange(ctx context.Context, name string, exchange topology.Exchange) error {
	bindings := c.bindingsOf(name)
	if err := c.rebind(ctx, bindings); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err := c.client.DeleteExchange(ctx, c.Vhost, name)
	if err != nil {
		err = fmt.Errorf("delete exchange %q: %w", name, err)
	}
	if err != nil && !broker.IsUnanswered(err) {
		return err
	}
	// Without an answer it may be gone all the same; if it is not, making it anew is refused.
	return errors.Join(err, c.createExchange(ctx, name, exchange), c.rebind(ctx, bindings))
}

// rebind makes all bindings that can be made, and reports the others. Queues that may still be deleted
// get none.
func (c *changer) rebind(ctx context.Context, bindings []topology.Binding) error {
	var failed []error
	for _, b := range bindings {
		if !b.ToExchange && c.deletionUnknown[b.Destination] {
			continue
		}
		if err := c.client.Bind(ctx, c.Vhost, b); err != nil {
			failed = append(failed, fmt.Errorf("restore binding %q: %w", b, err))
		}
	}
	return errors.Join(failed...)
}

// bindingsOf lists the bindings that come from or lead to an exchange.
func (c *changer) bindingsOf(exchange string) []topology.Binding {
	var found []topology.Binding
	for _, b := range c.All.Bindings {
		if b.Source == exchange || (b.ToExchange && b.Destination == exchange) {
			found = append(found, b)
		}
	}
	return found
}
