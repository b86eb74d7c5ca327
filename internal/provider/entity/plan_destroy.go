package entity

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// planDestroy says in the plan what will make the destroy fail, and what it lets go.
func (e *entity[M, S]) planDestroy(ctx context.Context, prior tfsdk.State) diag.Diagnostics {
	if !e.provider.Configured() || prior.Raw.IsNull() {
		return nil
	}
	var state M
	diags := prior.Get(ctx, &state)
	if diags.HasError() {
		return diags
	}
	user, more := e.reachForPlan(ctx)
	diags.Append(more...)
	if user != nil {
		diags.Append(e.warnOfEnd(ctx, state)...)
	}
	return diags
}

// warnOfEnd says what makes the end of a resource fail, or loses messages.
func (e *entity[M, S]) warnOfEnd(ctx context.Context, goes M) diag.Diagnostics {
	spec, lifecycle, diags := e.going(ctx, goes)
	vhost, err := e.listing(ctx, e.key(goes).Vhost, goes)
	if err != nil || diags.HasError() {
		return diags // Delete reads the vhost again, and is the one that refuses.
	}
	diags.Append(e.warnOfDestroy(ctx, spec, vhost, lifecycle)...)
	return append(diags, e.kind.LostByDestroy(e.provider, spec, vhost)...)
}

func (e *entity[M, S]) warnOfDestroy(ctx context.Context, spec S, vhost topology.Vhost, lifecycle Lifecycle) diag.Diagnostics {
	var diags diag.Diagnostics
	if use := e.kind.InUse(spec, vhost.Topology); use != nil {
		diags.AddWarning(use.Summary, use.Planned)
	}
	change := e.kind.Change(&spec, nil, vhost)
	diags.Append(e.warnOfBindings(spec, change, lifecycle.Force)...)
	queues := slices.Collect(maps.Keys(e.kind.Expand(spec).Queues))
	if len(queues) == 0 {
		return diags
	}
	atRisk := topology.DeadLettersAtRisk(change.Live, change.Wanted, vhost, change.SharedQueues)
	contents, err := e.provider.Applier.Contents(ctx, change.Vhost, queues, atRisk)
	switch {
	case err != nil || len(contents) == 0:
	case lifecycle.Force:
		diags.Append(e.destroyDeletesMessages(contents))
	default:
		diags.Append(e.destroyWouldLoseMessages(spec, contents))
	}
	return diags
}

// warnOfRefusal says in the plan of a change which queues will make the apply fail.
func (e *entity[M, S]) warnOfRefusal(ctx context.Context, prior *S, next S, vhost topology.Vhost) diag.Diagnostics {
	if prior == nil || e.kind.Replaces(*prior, next) {
		return nil
	}
	var diags diag.Diagnostics
	change := e.kind.Change(prior, &next, vhost)
	if bound := change.Bound(); bound != nil {
		diags.Append(queuesBound(bound))
	}
	// Without an answer, apply is the one that refuses.
	if found, err := e.provider.Applier.Refused(ctx, change); err == nil && len(found) > 0 {
		diags.Append(e.changeWouldLoseMessages(*prior, found))
	}
	return diags
}

// warnOfReplacement says of a resource that is replaced what the plan of its destroy would say, since there is none. Terraform
// shows no warnings of the plan of its creation.
func (e *entity[M, S]) warnOfReplacement(ctx context.Context, goes M) diag.Diagnostics {
	if !e.provider.Configured() || e.provider.HasWritten() {
		return nil
	}
	if _, err := e.provider.Reach(ctx); err != nil {
		return nil // The plan of what replaces it says so.
	}
	return e.warnOfEnd(ctx, goes)
}

// warnOfBindings names the bindings of others that keep a destroy from being made, and those that are deleted with the resource.
func (e *entity[M, S]) warnOfBindings(spec S, change apply.Change, force bool) (diags diag.Diagnostics) {
	change.Forced = force
	going := e.kind.BindingsThatGo(spec, change.All.Topology)
	if bound := change.Bound(); bound != nil {
		diags.Append(queuesBound(bound))
		going = slices.DeleteFunc(going, func(b topology.Binding) bool { return slices.ContainsFunc(bound.Bindings, b.Equal) })
	}
	if len(going) > 0 {
		diags.Append(e.bindingsGo(going))
	}
	return diags
}
