package owner

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Update repairs differences and applies a changed configuration in place. The new state is the plan, as after Create. After
// a failure, the state has the old inputs and the broker's objects, so the next plan shows the remaining changes.
func (o owned[M, S, P]) Update(ctx context.Context, plan, state *M) diag.Diagnostics {
	next, prior, diags := o.resolve(ctx, plan, state)
	lifecycle, more := P(plan).Lifecycle(ctx)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	diags.Append(o.update(ctx, o.vhost(*plan), next, prior, lifecycle)...)
	if !diags.HasError() {
		return diags
	}
	if all, err := o.run.Fresh(ctx, o.vhost(*state)); err == nil {
		before := *state
		if exists, failed := o.refresh(ctx, state, all.Topology); !exists || failed.HasError() {
			*state = before
		}
	}
	return diags
}

func (o owned[M, S, P]) update(ctx context.Context, vhost string, next S, prior *S, lifecycle Lifecycle) diag.Diagnostics {
	all, diags := o.listForWrite(ctx, vhost, next, prior)
	if diags.HasError() {
		return diags
	}
	var change apply.Change
	var kept map[string]string
	err := o.perform(ctx, all, func(all topology.Vhost) apply.Change {
		change = o.change(prior, &next, all)
		change.Drain, change.Waiting = lifecycle.Update, logWaiting(ctx)
		return change
	}, func(change apply.Change) (err error) {
		kept, err = o.run.Applier.Update(ctx, change)
		return err
	})
	var refused *apply.KeptError
	var bound *apply.BoundError
	switch {
	case err == nil:
		diags.Append(o.warnOfReleased(ctx, change, (*prior).Effects(&next, all.Topology).Detached)...)
		diags.Append(entity.Unstarted(ctx, o.run, vhost, leftovers(change, (*prior).Expand(), next.Expand())...)...)
	case errors.As(err, &refused):
		diags.AddError("The change would lose messages", o.notEmpty(*prior, refused.Queues))
	case errors.As(err, &bound) && o.asBefore(ctx, prior, next, change):
		diags.Append(stillBound(bound))
	case !broker.IsUnanswered(err) && o.asBefore(ctx, prior, next, change):
		diags.Append(o.Cannot("update", "Nothing of this resource was changed.\n\n"+err.Error()))
	default:
		diags.Append(o.Cannot("update",
			"The change was begun but not finished. The next plan shows what is left to do.\n\n"+err.Error()))
	}
	diags.Append(o.notUndone(err)...)
	if len(kept) > 0 {
		diags.Append(queuesKept(kept))
	}
	return diags
}

// leftovers are the queues of an interrupted change that the next one finds.
func leftovers(change apply.Change, prior, next topology.Topology) (queues []string) {
	for name := range change.Live.Queues {
		_, before := prior.Queues[name]
		if _, wanted := next.Queues[name]; wanted && !before {
			queues = append(queues, name)
		}
	}
	return queues
}

// asBefore reports whether a failed change has changed nothing because the broker refused its first write.
func (o owned[M, S, P]) asBefore(ctx context.Context, prior *S, next S, failed apply.Change) bool {
	now, err := o.run.Fresh(ctx, failed.Vhost)
	if err != nil {
		return false
	}
	return topology.Diff(o.change(prior, &next, now).Live, failed.Live).Empty()
}
