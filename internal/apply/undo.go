package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// rollbackTime limits the undoing of a failed call. It continues after a cancellation.
const rollbackTime = 3 * time.Minute

// journal records how to restore removed objects, so that a call that fails leaves the broker unchanged. Steps remove
// objects one by one.
type journal []func(context.Context) error

func (j *journal) add(what string, undo func(context.Context) error) {
	*j = append(*j, func(ctx context.Context) error {
		if err := undo(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// rollback undoes everything in reverse order, and returns the errors.
func (j *journal) rollback(ctx context.Context) error {
	entries := *j
	*j = nil
	var failed []error
	for _, undo := range slices.Backward(entries) {
		failed = append(failed, undo(ctx))
	}
	return errors.Join(failed...)
}

// removeMade removes the made objects with the checks of Remove, because consumers reject messages as soon as a policy
// is written. If messages would be lost, all objects stay. Users need the definition, the return bindings and the
// policies to import the pipeline and to return or consume the messages.
func (e *execution) removeMade(ctx context.Context) error {
	if e.made.Empty() {
		return nil
	}
	// The broker must count the messages that were rejected since the policies were written. A removal that does not see
	// them unbinds the inbox, and later messages go to the failed queue.
	if len(e.made.Policies) > 0 {
		if err := pause(ctx, e.times.Settle); err != nil {
			return err
		}
	}
	all, err := e.client.List(ctx, e.Vhost)
	if err != nil {
		return fmt.Errorf("the created objects stay, since the vhost cannot be read: %w", err)
	}
	removal := e.Change
	// A policy can still appear if its write was not answered.
	removal.All, removal.Live, removal.Wanted = all, e.made, topology.New()
	removal.All.Topology = topology.Merge(all.Topology, topology.Topology{Policies: e.made.Policies})
	undo := e.execution(removal)
	err = undo.removeAll(ctx, goOn)
	if isA[*KeptError](err) {
		return fmt.Errorf("the created objects stay, since removing them would lose the messages in these queues:\n%w", err)
	}
	return errors.Join(append(undo.unanswered, err)...)
}
