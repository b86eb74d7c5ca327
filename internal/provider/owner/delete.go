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

// Delete removes the resource if that loses no message. Otherwise it changes nothing.
func (o owned[M, S, P]) Delete(ctx context.Context, state M) diag.Diagnostics {
	spec, lifecycle, diags := o.going(ctx, state)
	if diags.HasError() {
		return diags
	}
	return append(diags, o.delete(ctx, o.vhost(state), spec, lifecycle)...)
}

// going has the specification and the lifecycle of a resource that is destroyed.
func (o owned[M, S, P]) going(ctx context.Context, state M) (spec S, lifecycle Lifecycle, diags diag.Diagnostics) {
	spec, diags = P(&state).Specification(ctx)
	lifecycle, more := P(&state).Lifecycle(ctx)
	diags.Append(more...)
	return spec, lifecycle, diags
}

func (o owned[M, S, P]) delete(ctx context.Context, vhost string, spec S, lifecycle Lifecycle) diag.Diagnostics {
	all, err := o.run.Fresh(ctx, vhost)
	switch {
	case broker.IsNotFound(err) && entity.VhostGone(ctx, o.run, vhost):
		return nil
	case err != nil:
		return diag.Diagnostics{entity.CannotList(vhost, entity.SoNothingChanged, err)}
	}
	if use := o.inUse(spec, all.Topology); use != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic(use.Summary, use.Applied)}
	}
	var change apply.Change
	err = o.perform(ctx, all, func(all topology.Vhost) apply.Change {
		change = o.change(&spec, nil, all)
		change.Drain, change.Waiting, change.Recheck = lifecycle.Delete, logWaiting(ctx), o.recheck(vhost, spec)
		change.Unused = o.unused(vhost, spec)
		return change
	}, func(change apply.Change) error {
		return o.remove(ctx, change, lifecycle.Force)
	})
	var diags diag.Diagnostics
	var refused *apply.KeptError
	var bound *apply.BoundError
	switch {
	case err == nil:
		diags.Append(o.warnOfReleased(ctx, change, spec.Effects(nil, all.Topology).Detached)...)
	case errors.As(err, &refused):
		diags.AddError(o.destroyLosesMessages(spec, refused.Queues))
	case errors.As(err, &bound):
		diags.Append(stillBound(bound))
	default:
		diags.Append(o.Cannot("delete", err.Error()))
	}
	diags.Append(o.notUndone(err)...)
	return diags
}

// recheck reads the vhost again after a wait, since others can have begun to use the resource meanwhile.
func (o owned[M, S, P]) recheck(vhost string, spec S) func(context.Context) (topology.Vhost, topology.Topology, error) {
	return func(ctx context.Context) (topology.Vhost, topology.Topology, error) {
		all, err := o.run.Fresh(ctx, vhost)
		if err != nil {
			return all, topology.Topology{}, err
		}
		return all, o.change(&spec, nil, all).Live, o.usedMeanwhile(spec, all.Topology)
	}
}

// unused fails if others have begun to use the resource. It reads only the bindings from one exchange.
func (o owned[M, S, P]) unused(vhost string, spec S) func(context.Context) error {
	if o.InUse == nil {
		return nil
	}
	return func(ctx context.Context) error {
		bindings, err := o.run.Client.BindingsFrom(ctx, vhost, o.UsedThrough(spec))
		if err != nil && !broker.IsNotFound(err) {
			return err
		}
		return o.usedMeanwhile(spec, topology.Topology{Bindings: bindings})
	}
}

// usedMeanwhile is an error if others have begun to use the resource.
func (o owned[M, S, P]) usedMeanwhile(spec S, vhost topology.Topology) error {
	if use := o.inUse(spec, vhost); use != nil {
		return errors.New(use.Waited)
	}
	return nil
}

// remove makes the change of a destroy. If force is true, it deletes queues with their messages.
func (o owned[M, S, P]) remove(ctx context.Context, change apply.Change, force bool) (err error) {
	switch {
	case o.Shares:
		_, err = o.run.Applier.Update(ctx, change)
		return err
	case force:
		return o.run.Applier.ForceRemove(ctx, change)
	}
	return o.run.Applier.Remove(ctx, change)
}

// inUse finds other users that prevent a destroy, nil without such users.
func (o owned[M, S, P]) inUse(spec S, vhost topology.Topology) *InUse {
	if o.InUse == nil {
		return nil
	}
	return o.InUse(spec, vhost)
}
