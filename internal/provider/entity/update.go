package entity

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Update repairs what differs and brings a changed configuration to the broker, in place. The state is the
// plan, as after Create. After a failure it is what is on the broker, with the inputs as they were: the next
// plan shows what is left to do.
func (e *entity[M, S]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer e.provider.Call()()
	var plan, state M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	next, prior, diags := e.resolve(ctx, &plan, &state)
	resp.Diagnostics.Append(diags...)
	lifecycle, diags := e.kind.Lifecycle(ctx, plan)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(e.setParts(ctx, resp.Identity, e.kind.Identity(plan))...)
	resp.Diagnostics.Append(e.requireConnection(ctx)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(e.update(ctx, e.key(plan).Vhost, next, prior, lifecycle)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	if all, err := e.provider.Client.List(ctx, e.key(state).Vhost); err == nil {
		if exists, diags := e.refresh(ctx, &state, all.Topology); exists && !diags.HasError() {
			resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		}
	}
}

func (e *entity[M, S]) update(ctx context.Context, vhost string, next S, prior *S, lifecycle Lifecycle) diag.Diagnostics {
	all, diags := e.listForWrite(ctx, vhost, next, prior)
	if diags.HasError() {
		return diags
	}
	var change apply.Change
	var kept map[string]string
	err := e.perform(ctx, all, func(all topology.Vhost) apply.Change {
		change = e.kind.Change(prior, &next, all)
		change.Drain, change.Waiting = lifecycle.Update, logWaiting(ctx)
		return change
	}, func(change apply.Change) (err error) {
		kept, err = e.provider.Applier.Update(ctx, change)
		return err
	})
	var refused *apply.KeptError
	var bound *apply.BoundError
	switch {
	case err == nil && prior != nil:
		diags.Append(e.warnOfReleased(ctx, change, e.kind.Released(*prior, &next, all))...)
	case errors.As(err, &refused):
		diags.Append(e.changeLosesMessages(*prior, refused.Queues))
	case err != nil && (errors.As(err, &bound) || !broker.IsUnanswered(err)) && e.asBefore(ctx, prior, next, change):
		diags.Append(e.cannotBeginUpdate(err))
	case err != nil:
		diags.Append(e.cannotUpdate(err))
	}
	diags.Append(e.notUndone(err)...)
	if len(kept) > 0 {
		diags.Append(queuesKept(kept))
	}
	return diags
}

// asBefore reports whether a change that failed has left everything as it was, because its first write was refused.
func (e *entity[M, S]) asBefore(ctx context.Context, prior *S, next S, failed apply.Change) bool {
	now, err := e.provider.Client.List(ctx, failed.Vhost)
	if err != nil {
		return false
	}
	return topology.Diff(e.kind.Change(prior, &next, now).Live, failed.Live).Empty()
}
