package entity

import (
	"context"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// perform makes a change, and once more if it has left queues to others who let go of them meanwhile: of those who stop at the
// same time, each sees the others use the queue, and the last one has to delete it.
func (e *entity[M, S]) perform(
	ctx context.Context, all topology.Vhost, plan func(topology.Vhost) apply.Change, write func(apply.Change) error,
) error {
	change := plan(all)
	left := change.LeftToOthers()
	if err := write(change); err != nil || len(left) == 0 {
		return err
	}
	now, err := e.session.Fresh(ctx, change.Vhost)
	if err != nil {
		return err
	}
	change = plan(now)
	if slices.ContainsFunc(slices.Collect(maps.Keys(change.Live.Queues)), func(queue string) bool { return slices.Contains(left, queue) }) {
		return write(change)
	}
	return nil
}
