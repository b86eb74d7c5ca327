package owner

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// PlanDestroy warns in the plan if the destroy will fail or lose messages.
func (o owned[M, S, P]) PlanDestroy(ctx context.Context, state M) diag.Diagnostics {
	user, diags := entity.ReachForPlan(ctx, o.run)
	if user != nil {
		diags.Append(o.warnOfEnd(ctx, state)...)
	}
	return diags
}

// warnOfEnd warns if a destroy will fail or lose messages. Where the failure itself does harm, it is an error.
func (o owned[M, S, P]) warnOfEnd(ctx context.Context, goes M) diag.Diagnostics {
	spec, lifecycle, diags := o.going(ctx, goes)
	vhost, err := o.run.Near(ctx, o.vhost(goes), o.center(goes))
	if err != nil || diags.HasError() {
		return diags // Delete reads the vhost again, and refuses if needed.
	}
	change := o.change(&spec, nil, vhost)
	change.Forced = lifecycle.Force
	if use := o.inUse(spec, vhost.Topology); use != nil {
		diags.AddWarning(use.Summary, use.Planned)
	}
	diags.Append(o.warnOfBindings(spec, change)...)
	if change.Forced {
		diags.Append(o.warnOfForce(ctx, change)...)
	} else if contents, err := o.run.Applier.RefusedRemoval(ctx, change); err == nil && len(contents) > 0 {
		add := diags.AddWarning
		if spec.Owner().Entrance != "" && lifecycle.Delete == 0 && o.staysRefused(ctx, change) {
			add = diags.AddError // the destroy would first take the bindings behind the entrance, and due messages would lose their route
		}
		add(o.destroyLosesMessages(spec, contents))
	}
	return append(diags, o.warnOfLost(change, spec, nil)...)
}

// staysRefused reports whether a second look also finds messages, since counts can be stale.
func (o owned[M, S, P]) staysRefused(ctx context.Context, change apply.Change) bool {
	if _, err := o.run.AwaitCounts(ctx, o.run.Applier.Times().Stale); err != nil {
		return false
	}
	contents, err := o.run.Applier.RefusedRemoval(ctx, change)
	return err == nil && len(contents) > 0
}

// warnOfForce names the queues whose messages a forced destroy deletes.
func (o owned[M, S, P]) warnOfForce(ctx context.Context, change apply.Change) diag.Diagnostics {
	queues := append(slices.Collect(maps.Keys(change.Live.Queues)), change.Exposed()...)
	atRisk := topology.DeadLettersAtRisk(change.Live, change.Wanted, change.All, change.SharedQueues)
	contents, err := o.run.Applier.Contents(ctx, change.Vhost, queues, atRisk)
	if err != nil || len(contents) == 0 {
		return nil
	}
	return diag.Diagnostics{o.destroyDeletesMessages(contents)}
}

// warnOfRefusal names in the plan of a change the queues that will make the apply fail.
func (o owned[M, S, P]) warnOfRefusal(ctx context.Context, change apply.Change, prior S) diag.Diagnostics {
	var diags diag.Diagnostics
	if bound := change.Bound(); bound != nil {
		diags.Append(queuesBound(bound))
	}
	// If the queues cannot be read, the plan continues: apply refuses if needed.
	if found, err := o.run.Applier.Refused(ctx, change); err == nil && len(found) > 0 {
		diags.Append(o.changeWouldLoseMessages(prior, found))
	}
	return diags
}

// warnOfReplacement gives the warnings of PlanDestroy for a resource that is replaced, since Terraform does not plan its
// destroy separately. Terraform shows no warnings from the plan of the new resource.
func (o owned[M, S, P]) warnOfReplacement(ctx context.Context, goes M) diag.Diagnostics {
	if !o.run.Configured() || o.run.HasWritten() {
		return nil
	}
	if _, err := o.run.Reach(ctx); err != nil {
		return nil // The plan of the new resource reports this.
	}
	return o.warnOfEnd(ctx, goes)
}

// warnOfBindings names other owners' bindings that prevent a destroy, and those that are deleted with the resource.
func (o owned[M, S, P]) warnOfBindings(spec S, change apply.Change) (diags diag.Diagnostics) {
	going := spec.Effects(nil, change.All.Topology).Bindings
	if bound := change.Bound(); bound != nil {
		diags.Append(queuesBound(bound))
		going = slices.DeleteFunc(going, func(b topology.Binding) bool { return slices.ContainsFunc(bound.Bindings, b.Equal) })
	}
	if len(going) > 0 {
		diags.Append(o.bindingsGo(going))
	}
	return diags
}

// warnOfLost warns of losses by a change; next is nil for a destroy. It names detached queues whose rejected messages are
// lost from then on, and failed queues that stay without an owner.
func (o owned[M, S, P]) warnOfLost(change apply.Change, prior S, next *S) diag.Diagnostics {
	var diags diag.Diagnostics
	effects := prior.Effects(next, change.All.Topology)
	dropped := droppedDeadLetters(o.run, change, effects.Detached)
	if len(dropped) > 0 {
		warning := deadLettersDropped(dropped)
		if next != nil { // a destroy has no configuration to point to
			warning = diag.WithPath(o.WorkQueues, warning)
		}
		diags.Append(warning)
	}
	return append(diags, failedQueuesStay(effects.FailedQueues)...)
}

// droppedDeadLetters lists the queues whose rejected messages are lost after a change that detaches them. It ignores other
// owners' policies that leave the queue in this run.
func droppedDeadLetters(run *configured.Provider, c apply.Change, queues []string) []string {
	leaving := map[string][]string{}
	for _, queue := range queues {
		going := run.Goes(configured.Policy, c.Vhost, queue, slices.Collect(maps.Keys(c.Live.Policies))...)
		leaving[queue] = slices.DeleteFunc(slices.Clone(going), func(name string) bool { _, own := c.Live.Policies[name]; return own })
	}
	return topology.DroppedDeadLetters(queues, c.Live, c.Wanted, c.All, leaving)
}
