package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// resolve computes the attributes that the plan left unknown, and checks the result. Within apply all inputs are known.
func (o owned[M, S, P]) resolve(ctx context.Context, plan, priorModel *M) (next S, prior *S, diags diag.Diagnostics) {
	known, diags := P(plan).Compute(ctx, priorModel)
	if !known {
		diags.AddError("Unknown input at apply", "This is a bug in the provider: an attribute is still unknown.")
	}
	if diags.HasError() {
		return next, nil, diags
	}
	next, prior, more := o.specifications(ctx, *plan, priorModel)
	diags.Append(more...)
	if !diags.HasError() {
		diags.Append(report.Errors(o.Check(next))...)
	}
	return next, prior, diags
}

// listForWrite reads the vhost just before a change and reports everything that prevents it, so that no change stops halfway. A policy
// of the same apply is written before, or is compared with the wanted objects.
func (o owned[M, S, P]) listForWrite(ctx context.Context, vhost string, next S, prior *S) (topology.Vhost, diag.Diagnostics) {
	o.run.Changes(configured.Written + vhost).Add(brings(next))
	all, diags := entity.Fresh(ctx, o.run, vhost)
	if diags.HasError() {
		return all, diags
	}
	return all, report.Applied(o.CheckLive(next, prior, all))
}

// notUndone reports the changes that a failed apply could not undo, apart from the cause of the failure.
func (o owned[M, S, P]) notUndone(err error) diag.Diagnostics {
	if left, is := errors.AsType[*apply.NotUndoneError](err); is {
		return diag.Diagnostics{o.rollbackIncomplete(left)}
	}
	return nil
}

// perform makes a change. If it left queues to other owners, it reads the vhost again and deletes the queues that those
// owners have released meanwhile. When several owners stop at the same time, each still sees the others use the queue, and
// the last one must delete it.
func (o owned[M, S, P]) perform(
	ctx context.Context, all topology.Vhost, plan func(topology.Vhost) apply.Change, write func(apply.Change) error,
) error {
	change := plan(all)
	left := change.LeftToOthers()
	if err := write(change); err != nil || len(left) == 0 {
		return err
	}
	now, err := o.run.Fresh(ctx, change.Vhost)
	if err != nil {
		return err
	}
	change = plan(now)
	if slices.ContainsFunc(left, func(queue string) bool { _, released := change.Live.Queues[queue]; return released }) {
		return write(change)
	}
	return nil
}

// warnOfReleased names queues that have no dead-letter exchange after a change. If another owner's policy should still give
// them one, it reads the vhost again. When two processes detach a queue at the same time, each finds the other's policy
// before its own change. After both changes, there is no policy.
func (o owned[M, S, P]) warnOfReleased(ctx context.Context, done apply.Change, released []string) diag.Diagnostics {
	after := done.All
	after.Topology = topology.Merge(after.Without(done.Live), done.Wanted)
	released = slices.DeleteFunc(released, func(queue string) bool { _, stays := after.Queues[queue]; return !stays })
	dropping := topology.WithoutDeadLetterExchange(released, after)
	if len(dropping) < len(released) {
		now, err := o.run.Fresh(ctx, done.Vhost)
		if err != nil {
			return diag.Diagnostics{releasedUnread(released, err)}
		}
		dropping = topology.WithoutDeadLetterExchange(released, now)
	}
	if len(dropping) == 0 {
		return nil
	}
	return diag.Diagnostics{deadLettersAreDropped(dropping)}
}

// logWaiting logs the queues that an apply waits for, since Terraform itself shows only that it waits.
func logWaiting(ctx context.Context) func(map[string]string) {
	const every = 10 * time.Second
	var last time.Time
	return func(contents map[string]string) {
		if time.Since(last) < every {
			return
		}
		last = time.Now()
		fields := make(map[string]any, len(contents))
		for queue, content := range contents {
			fields[queue] = content
		}
		tflog.Info(ctx, "waiting until these queues hold no messages", fields)
	}
}

// RefusedRemedy says how a queue of refused messages gets empty. If the target queue or its binding is gone, the broker keeps
// waiting for it.
func RefusedRemedy(exchange string) string {
	return fmt.Sprintf("make room in the queue behind %q that refuses messages. "+
		"The broker then moves these messages there within six minutes. "+
		"If that queue or its binding is gone, bind a queue in its place.", exchange)
}

// FailedQueueRemedy says how a failed queue gets empty that others can consume, too.
const FailedQueueRemedy = "rabbitmq-retry failed replays, exports and deletes these messages, with --queue. " +
	"If the queue has consumers, stop them."

// CannotReadQueues is the error if the queues' contents are not known.
func CannotReadQueues(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Cannot read whether queues are empty", err.Error())
}
