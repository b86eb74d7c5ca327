package owner

import (
	"context"
	"maps"
	"runtime"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Plan sets every computed attribute, and checks the plan as far as its inputs are known.
func (o owned[M, S, P]) Plan(ctx context.Context, plan, prior *M) diag.Diagnostics {
	known, diags := P(plan).Compute(ctx, prior)
	switch {
	case diags.HasError():
	case known:
		diags.Append(o.checkPlan(ctx, *plan, prior)...)
	case prior == nil:
		diags.Append(o.checkCreation(ctx, *plan)...)
	case len(o.Replacing().Different(*plan, *prior)) > 0:
		diags.Append(o.warnOfReplacement(ctx, *prior)...)
	}
	return diags
}

// checkPlan checks a plan with known inputs, by itself and against the broker.
func (o owned[M, S, P]) checkPlan(ctx context.Context, plan M, priorModel *M) diag.Diagnostics {
	next, prior, diags := o.specifications(ctx, plan, priorModel)
	lifecycle, more := P(&plan).Lifecycle(ctx)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	models, over := []M{plan}, attribute.Inputs(nil)
	if priorModel != nil {
		models, over = append(models, *priorModel), o.Replacing().Different(plan, *priorModel)
	}
	if len(over) > 0 {
		diags.Append(o.warnOfReplacement(ctx, *priorModel)...)
	}
	diags.Append(report.Errors(o.Check(next))...)
	if o.Warn != nil {
		diags.Append(o.Warn(next, prior)...)
	}
	// During an apply, the earlier listing can be older than this run's changes.
	if diags.HasError() || !o.run.Configured() || o.run.HasWritten() {
		return diags
	}
	user, more := entity.ReachForPlan(ctx, o.run)
	diags.Append(more...)
	if user == nil {
		return diags
	}
	if !user.CanWritePolicies() && len(next.Expand().Policies) > 0 {
		diags.Append(mayNotWritePolicies(*user, o.Policies))
	}
	name := o.vhost(plan)
	_, err := o.run.Listed(ctx, name)
	switch {
	case broker.IsNotFound(err):
		diags.Append(entity.VhostNotThereYet(ctx, o.run, name)...)
	case err != nil:
		diags.Append(entity.CannotList(name, " to check the plan", err))
	default:
		diags.Append(o.compare(ctx, plan, next, prior, o.center(models...), lifecycle.Force, over)...)
	}
	return diags
}

// comparisons limits the comparisons at the same time: each has its own copies of what can be a large vhost.
var comparisons = make(chan struct{}, runtime.GOMAXPROCS(0))

// compare compares a plan with what matters to it in the listed vhost, and with the policies of the same plan.
func (o owned[M, S, P]) compare(
	ctx context.Context, plan M, next S, prior *S, center nearby.Center, force bool, over attribute.Inputs,
) diag.Diagnostics {
	comparisons <- struct{}{}
	defer func() { <-comparisons }()
	name := o.vhost(plan)
	o.run.Changes(configured.PlannedObjects + name).Add(brings(next)) // first, so that a policy that is planned from now on sees them
	policies := o.run.Changes(configured.PlannedPolicies + name).Now()
	nothing := topology.Vhost{Topology: topology.New(), OperatorPolicies: map[string]topology.Policy{}}
	center.Policies = policies.In(nothing).Policies
	vhost, err := o.run.Near(ctx, name, center.With(next.Expand()))
	if err != nil {
		return diag.Diagnostics{entity.CannotList(name, " to check the plan", err)}
	}
	if prior == nil {
		if diags := o.checkInService(ctx, plan, vhost.Topology); diags.HasError() {
			return diags
		}
	}
	var diags, lost diag.Diagnostics
	if prior != nil && len(over) == 0 {
		change := o.change(prior, &next, vhost)
		diags, lost = o.warnOfRefusal(ctx, change, *prior), o.warnOfLost(change, *prior, &next)
		diags.Append(o.queuesGo(topology.Diff(change.Wanted, change.Live).Delete.Queues)...)
	}
	diags.Append(o.CheckPlan(o.run, next, prior, policies.In(vhost), force, over)...)
	diags.Append(lost...)
	// A plan that only repairs objects can be the first one of a destroy.
	if diags.HasError() && prior != nil && topology.Diff((*prior).Expand(), next.Expand()).Empty() {
		diags.Append(o.destroyWithoutRefresh())
	}
	return diags
}

// brings adds the wanted objects to a vhost, in place. It leaves out queues that others use, too: a new pipeline accepts some policies of
// theirs that must not be added later.
func brings[S Spec[S]](next S) func(*topology.Vhost) {
	wanted, shared := next.Expand(), next.Owner().Shared
	maps.DeleteFunc(wanted.Queues, func(name string, _ topology.Queue) bool { return slices.Contains(shared, name) })
	return func(all *topology.Vhost) {
		maps.Copy(all.Exchanges, wanted.Exchanges)
		maps.Copy(all.Queues, wanted.Queues)
		maps.Copy(all.Policies, wanted.Policies)
		all.Bindings = append(all.Bindings, wanted.Bindings...)
	}
}
