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
	if !e.session.Connected() || prior.Raw.IsNull() {
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
	e.session.MarkRemoved(e.key(state))
	vhost, err := e.session.Listing(ctx, e.key(state).Vhost)
	if err != nil {
		return diags // Delete reads the vhost again, and is the one that refuses.
	}
	diags.Append(e.warnOfDestroy(ctx, spec, vhost)...)
	return diags
}

func (e *entity[M, S]) warnOfDestroy(ctx context.Context, spec S, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	if use := e.kind.inUse(spec, vhost.Topology); use != nil {
		diags.AddWarning(use.Summary, use.Planned)
	}
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
