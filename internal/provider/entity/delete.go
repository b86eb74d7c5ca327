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

// Delete removes the resource if that loses no message; otherwise everything stays as it is.
func (e *entity[M, S]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer e.provider.Call()()
	var state M
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec, lifecycle, diags := e.going(ctx, state)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(e.requireConnection(ctx)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(e.delete(ctx, e.key(state).Vhost, spec, lifecycle)...)
	}
}

// going is what a resource that goes is, and how it goes.
func (e *entity[M, S]) going(ctx context.Context, state M) (spec S, lifecycle Lifecycle, diags diag.Diagnostics) {
	spec, diags = e.kind.Specification(ctx, state)
	lifecycle, more := e.kind.Lifecycle(ctx, state)
	diags.Append(more...)
	return spec, lifecycle, diags
}

func (e *entity[M, S]) delete(ctx context.Context, vhost string, spec S, lifecycle Lifecycle) diag.Diagnostics {
	e.provider.MarkWritten()
	all, err := e.provider.Fresh(ctx, vhost)
	switch {
	case broker.IsNotFound(err) && e.vhostGone(ctx, vhost):
		return nil
	case err != nil:
		return diag.Diagnostics{cannotList(vhost, soNothingChanged, err)}
	}
	if use := e.kind.InUse(spec, all.Topology); use != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic(use.Summary, use.Applied)}
	}
	var change apply.Change
	err = e.perform(ctx, all, func(all topology.Vhost) apply.Change {
		change = e.kind.Change(&spec, nil, all)
		change.Drain, change.Waiting, change.Recheck = lifecycle.Delete, logWaiting(ctx), e.recheck(vhost, spec)
		change.Unused = e.unused(vhost, spec)
		return change
	}, func(change apply.Change) error {
		return e.kind.Destroy(ctx, e.provider.Applier, change, lifecycle.Force)
	})
	var diags diag.Diagnostics
	var refused *apply.KeptError
	switch {
	case err == nil:
		diags.Append(e.warnOfReleased(ctx, change, e.kind.Released(spec, nil, all))...)
	case errors.As(err, &refused):
		diags.Append(e.destroyLosesMessages(spec, refused.Queues))
	default:
		diags.Append(e.cannot("delete", err.Error()))
	}
	diags.Append(e.notUndone(err)...)
	return diags
}

// recheck reads the vhost again after a wait, in which others may have begun to use what is to be destroyed.
func (e *entity[M, S]) recheck(vhost string, spec S) func(context.Context) (topology.Vhost, topology.Topology, error) {
	return func(ctx context.Context) (topology.Vhost, topology.Topology, error) {
		all, err := e.provider.Fresh(ctx, vhost)
		if err != nil {
			return all, topology.Topology{}, err
		}
		return all, e.kind.Change(&spec, nil, all).Live, e.usedMeanwhile(spec, all.Topology)
	}
}

// unused fails if others have begun to use what is to be destroyed. It reads no more than their bindings.
func (e *entity[M, S]) unused(vhost string, spec S) func(context.Context) error {
	if e.kind.UsedThrough == nil {
		return nil
	}
	return func(ctx context.Context) error {
		bindings, err := e.provider.Client.BindingsFrom(ctx, vhost, e.kind.UsedThrough(spec))
		if err != nil && !broker.IsNotFound(err) {
			return err
		}
		return e.usedMeanwhile(spec, topology.Topology{Bindings: bindings})
	}
}

// usedMeanwhile is an error if others have begun to use the resource.
func (e *entity[M, S]) usedMeanwhile(spec S, vhost topology.Topology) error {
	if use := e.kind.InUse(spec, vhost); use != nil {
		return errors.New(use.Waited)
	}
	return nil
}

// Remove is the Destroy of a kind whose objects are all its own.
func Remove(ctx context.Context, applier *apply.Applier, change apply.Change, force bool) error {
	if force {
		return applier.ForceRemove(ctx, change)
	}
	return applier.Remove(ctx, change)
}
