package apply

import (
	"context"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ForceRemove deletes every object of the owner with all messages that are in them.
func (a *Applier) ForceRemove(ctx context.Context, change Change) error {
	do := a.changer(change)
	if err := do.removePolicies(ctx, change.Live.Policies); err != nil {
		return err
	}
	if err := each(ctx, change.Live.Bindings, do.removeBinding); err != nil {
		return err
	}
	// A classic queue would be asked whether it is empty.
	regardless := func(ctx context.Context, name string, queue topology.Queue) error {
		return do.removeQueue(ctx, name, topology.Queue{})
	}
	if err := eachByName(ctx, change.Live.Queues, regardless); err != nil {
		return err
	}
	return eachByName(ctx, change.Live.Exchanges, do.removeExchange)
}
