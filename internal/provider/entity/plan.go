package entity

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ModifyPlan sets every computed attribute. What is read from the broker here ends in warnings and errors,
// never in the plan.
func (e *entity[M, S]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer e.provider.Call()()
	if !req.State.Raw.IsNull() && !e.provider.Configured() && !e.provider.Told("unconfigured") {
		resp.Diagnostics.Append(planNotConfigured())
	}
	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(e.planDestroy(ctx, req.State)...)
		return
	}
	var plan M
	var prior *M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if !req.State.Raw.IsNull() {
		prior = new(M)
		resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	known, diags := e.kind.Compute(ctx, &plan, prior)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	created, diags := req.Private.GetKey(ctx, createdKey)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	// The creation that ends a replacement is planned a second time.
	if (prior != nil || len(created) == 0) && e.identityKnown(plan) {
		e.provider.Plans(e.wholeKey(plan))
	}
	switch {
	case known:
		resp.Diagnostics.Append(e.checkPlan(ctx, plan, prior)...)
	case prior == nil:
		resp.Diagnostics.Append(e.checkCreation(ctx, plan)...)
	}
}

func (e *entity[M, S]) identityKnown(m M) bool {
	return !slices.ContainsFunc(e.kind.Identity(m), types.String.IsUnknown)
}

// checkPlan checks a plan whose inputs are known: by itself, against the others of this run, and against the
// broker.
func (e *entity[M, S]) checkPlan(ctx context.Context, plan M, priorModel *M) diag.Diagnostics {
	next, prior, diags := e.specifications(ctx, plan, priorModel)
	lifecycle, more := e.kind.Lifecycle(ctx, plan)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	if prior != nil && e.kind.Replaces(*prior, next) {
		diags.Append(e.warnOfReplacement(ctx, *priorModel)...)
	}
	diags.Append(report.Errors(e.kind.Check(next))...)
	diags.Append(e.kind.CheckRun(e.provider, next, prior)...)
	// Within apply, what was listed before may be older than what this run has written.
	if diags.HasError() || !e.provider.Configured() || e.provider.HasWritten() {
		return diags
	}
	user, more := e.reachForPlan(ctx)
	diags.Append(more...)
	if user == nil {
		return diags
	}
	diags.Append(e.checkUser(*user, next)...)
	name, models := e.key(plan).Vhost, []M{plan}
	if priorModel != nil {
		models = append(models, *priorModel)
	}
	vhost, err := e.listing(ctx, name, models...)
	switch {
	case broker.IsNotFound(err):
		diags.Append(vhostNotThereYet(name))
	case err != nil:
		diags.Append(cannotList(name, " to check the plan", err))
	default:
		diags.Append(e.compare(ctx, plan, next, prior, vhost, lifecycle)...)
	}
	return diags
}

// compare compares a plan with the vhost.
func (e *entity[M, S]) compare(
	ctx context.Context, plan M, next S, prior *S, vhost topology.Vhost, lifecycle Lifecycle,
) diag.Diagnostics {
	if prior == nil {
		if diags := e.checkInService(ctx, plan, vhost.Topology); diags.HasError() {
			return diags
		}
	}
	diags := e.warnOfRefusal(ctx, prior, next, vhost)
	diags.Append(e.kind.CheckPlan(e.provider, next, prior, vhost, lifecycle)...)
	if diags.HasError() && prior != nil && e.unchanged(*prior, next) {
		diags.Append(e.destroyWithoutRefresh())
	}
	return diags
}

// unchanged reports whether a plan repairs at most, as one that precedes a destroy.
func (e *entity[M, S]) unchanged(prior, next S) bool {
	return topology.Diff(e.kind.Expand(prior), e.kind.Expand(next)).Empty()
}

// checkUser finds a user who may not write the policies that are needed.
func (e *entity[M, S]) checkUser(user broker.User, next S) diag.Diagnostics {
	if user.CanWritePolicies() || len(e.kind.Expand(next).Policies) == 0 {
		return nil
	}
	return diag.Diagnostics{mayNotWritePolicies(user, e.kind.Policies)}
}
