package entity

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// warnOfReleased names queues that have no dead-letter exchange after a change. If another owner's policy should still give
// them one, it looks once more: of two processes that detach a queue at the same time, each finds the other's policy before
// its own change, and the last one finds none afterwards.
func (e *entity[M, S]) warnOfReleased(ctx context.Context, done apply.Change, released []string) diag.Diagnostics {
	after := done.All
	after.Topology = topology.Merge(after.Without(done.Live), done.Wanted)
	released = slices.DeleteFunc(released, func(queue string) bool { _, stays := after.Queues[queue]; return !stays })
	dropping := topology.WithoutDeadLetterExchange(released, after)
	if len(dropping) < len(released) {
		now, err := e.session.Fresh(ctx, done.Vhost)
		if err != nil {
			return diag.Diagnostics{report.ReleasedUnread(released, err)}
		}
		dropping = topology.WithoutDeadLetterExchange(released, now)
	}
	if len(dropping) == 0 {
		return nil
	}
	return diag.Diagnostics{report.DeadLettersAreDropped(dropping)}
}
