package entity

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// planDestroy says in the plan what will make the destroy fail.
func (e *entity[M, S]) planDestroy(ctx context.Context, prior tfsdk.State) diag.Diagnostics {
	if !e.session.Configured() || prior.Raw.IsNull() {
		return nil
	}
	var state M
	diags := prior.Get(ctx, &state)
	if diags.HasError() {
		return diags
	}
	spec, more := e.kind.Specification(ctx, state)
	diags.Append(more...)
	lifecycle, more := e.kind.Lifecycle(ctx, state)
	diags.Append(more...)
	if diags.HasError() || lifecycle.Retain {
		return diags
	}
	if lifecycle.Force {
		e.session.MarkRemoved(e.key(state))
	}
	user, more := e.reachForPlan(ctx)
	diags.Append(more...)
	if user == nil {
		return diags
	}
	vhost, err := e.session.Listing(ctx, e.key(state).Vhost)
	if err != nil {
		return diags // Delete reads the vhost again, and is the one that refuses.
	}
	diags.Append(e.warnOfDestroy(ctx, spec, vhost)...)
	diags.Append(e.kind.LetsGo(e.session, spec, vhost)...)
	return diags
}

func (e *entity[M, S]) warnOfDestroy(ctx context.Context, spec S, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	if use := e.kind.inUse(spec, vhost.Topology); use != nil {
		diags.AddWarning(use.Summary, use.Planned)
	}
	diags.Append(e.warnOfBindings(spec, vhost.Topology)...)
	queues := slices.Collect(maps.Keys(e.kind.Expand(spec).Queues))
	if len(queues) == 0 {
		return diags
	}
	change := e.kind.Change(&spec, nil, vhost)
	atRisk := topology.DeadLettersAtRisk(change.Live, change.Wanted, vhost, change.SharedQueues)
	contents, err := e.session.Applier.Contents(ctx, change.Vhost, queues, atRisk)
	if err == nil && len(contents) > 0 {
		diags.Append(e.destroyWouldLoseMessages(contents))
	}
	return diags
}

// warnOfReplacement names the bindings of others that are deleted with a resource that is replaced, and the queues that
// it detaches, since there is no plan of its destroy. Terraform shows no warnings of the plan of its creation, so one
// that is asked for with -replace alone goes without.
func (e *entity[M, S]) warnOfReplacement(ctx context.Context, goes M) diag.Diagnostics {
	if !e.session.Configured() || e.session.HasWritten() {
		return nil
	}
	if _, err := e.session.Reach(ctx); err != nil {
		return nil // The plan of what replaces it says so.
	}
	spec, diags := e.kind.Specification(ctx, goes)
	vhost, err := e.listing(ctx, e.key(goes).Vhost, goes)
	if err != nil || diags.HasError() {
		return diags
	}
	return append(e.warnOfBindings(spec, vhost.Topology), e.kind.LetsGo(e.session, spec, vhost)...)
}

// warnOfBindings names the bindings of others that are deleted with the resource.
func (e *entity[M, S]) warnOfBindings(spec S, vhost topology.Topology) diag.Diagnostics {
	if e.kind.BindingsThatGo == nil {
		return nil
	}
	bindings := e.kind.BindingsThatGo(spec, vhost)
	if len(bindings) == 0 {
		return nil
	}
	return diag.Diagnostics{e.bindingsGo(bindings)}
}
