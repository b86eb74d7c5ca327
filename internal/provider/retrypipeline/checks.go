package retrypipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// checkDuplicate finds two resources of one name. Within one run each resource is planned once with
// what it is to Terraform; a replacement is planned a second time, which does not count.
func (r *pipelineResource) checkDuplicate(plan model, counts bool, resp *resource.ModifyPlanResponse) {
	if r.session == nil || !counts || !attribute.Known(plan.Name) || !attribute.Known(plan.Vhost) {
		return
	}
	if r.session.PlannedBefore(plan.Vhost.ValueString(), plan.Name.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Pipeline configured twice",
			fmt.Sprintf("Another rabbitmq_retry_pipeline in this configuration is named %q in vhost %q as well. They would fight over the same objects: remove one of them. "+
				"If you renamed the resource in Terraform, add a moved block instead.", plan.Name.ValueString(), plan.Vhost.ValueString()))
	}
}

// places are where the objects stand that are missing, or in the way.
var places = report.Places{Missing: path.Root("work_queues"), Exists: path.Root("name")}

// checkPlan checks a plan whose inputs are known: first by itself, then against the broker.
func (r *pipelineResource) checkPlan(ctx context.Context, plan model, priorModel *model, resp *resource.ModifyPlanResponse) {
	p, prior, diags := specifications(ctx, plan, priorModel)
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	if prior != nil && r.session != nil && (prior.Name != p.Name || prior.Vhost != p.Vhost || prior.QueueType != p.QueueType) {
		if priorModel.OnDestroy.ValueString() == onDestroyRetain {
			resp.Diagnostics.AddAttributeError(path.Root("on_destroy"), "A retained pipeline cannot be replaced",
				"The change replaces the pipeline, but on_destroy = \"retain\" leaves the old one on the broker, and the new one cannot have its work queues. Apply on_destroy = \"delete\" first, or forget the old one: terraform state rm.")
			return
		}
		r.session.Leaves(prior.Vhost, prior.Name)
	}
	resp.Diagnostics.Append(report.Errors(checkSpecification(p))...)
	resp.Diagnostics.Append(report.Warnings(preflight.WarnOfMaxAge(p))...)
	if resp.Diagnostics.HasError() || !r.connected() {
		return
	}
	r.checkClaims(p, resp)
	warnOfDisowned(p, prior, resp)
	// Within apply, what was listed before may be older than what this run has written.
	if r.session.Stale() {
		return
	}
	r.checkUser(p, resp)
	vhost, err := r.session.Near(ctx, p.Vhost, namesOf(p, prior), workQueuesOf(p, prior))
	switch {
	case broker.IsNotFound(err):
		resp.Diagnostics.AddAttributeWarning(path.Root("vhost"), "Vhost does not exist yet", report.MissingVhost(p.Vhost)+" Apply fails unless something else in the same apply makes it first.")
	case err != nil:
		resp.Diagnostics.AddError("Cannot read the vhost", fmt.Sprintf("Vhost %q could not be listed to check the plan: %s", p.Vhost, err))
	default:
		found := preflight.CheckLive(p, prior, vhost, r.session.Leaving(p.Vhost)...)
		resp.Diagnostics.Append(report.Planned(found, places)...)
		if len(found.Problems)+len(found.Exists) == 0 {
			resp.Diagnostics.Append(auditPlan(p, prior, vhost)...)
		}
	}
}

// namesOf are the pipeline's names, before the change and after it.
func namesOf(p pipeline.Pipeline, prior *pipeline.Pipeline) []string {
	if prior == nil {
		return []string{p.Name}
	}
	return []string{p.Name, prior.Name}
}

// workQueuesOf are the work queues before the change and after it.
func workQueuesOf(p pipeline.Pipeline, prior *pipeline.Pipeline) []string {
	names := slices.Collect(maps.Keys(p.WorkQueues))
	if prior != nil {
		names = slices.AppendSeq(names, maps.Keys(prior.WorkQueues))
	}
	return names
}

// auditPlan follows the messages of the pipeline through the vhost as it is planned. What it finds
// lies with objects of others, or with what was chosen knowingly, so it warns and does not refuse.
func auditPlan(p pipeline.Pipeline, prior *pipeline.Pipeline, vhost topology.Vhost) diag.Diagnostics {
	var diags diag.Diagnostics
	workQueues := slices.Sorted(maps.Keys(p.WorkQueues))
	for _, f := range audit.Pipeline(pipeline.AfterApply(p, prior, vhost), p.Names(), workQueues) {
		diags.AddAttributeWarning(path.Root("work_queues"), "Dead-letter audit: "+f.Rule, f.Message+"\n\n"+f.Remedy)
	}
	return diags
}

// checkClaims finds a work queue that two pipelines of this configuration have.
func (r *pipelineResource) checkClaims(p pipeline.Pipeline, resp *resource.ModifyPlanResponse) {
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueues)) {
		if other := r.session.Claim(p.Vhost, name, p.Name); other != "" {
			resp.Diagnostics.AddAttributeError(path.Root("work_queues").AtMapKey(name), "Queue of two pipelines",
				fmt.Sprintf("Queue %q is a work queue of the pipeline %q in this configuration as well. A queue belongs to one pipeline: remove it from one of the two.", name, other))
		}
	}
}

// checkUser finds a user who may not write the policies that the pipeline needs.
func (r *pipelineResource) checkUser(p pipeline.Pipeline, resp *resource.ModifyPlanResponse) {
	if user := r.session.User; !user.CanWritePolicies() {
		resp.Diagnostics.AddAttributeError(path.Root("policy_priority"), "User may not write policies",
			fmt.Sprintf("A pipeline has a policy, which needs the tag policymaker, but the user %q has the tags %q. "+
				"Add it to them: rabbitmqctl set_user_tags %s %s.", user.Name, user.Tags, user.Name, strings.Join(append(user.Tags, "policymaker"), " ")))
	}
}

// checkSpecification checks what several attributes say together.
func checkSpecification(p pipeline.Pipeline) []preflight.Problem {
	problems := workerconfig.CheckAttempts(int64(p.MaxAttempts))
	problems = append(problems, preflight.CheckSchedule(p.MaxAttempts, len(p.Delays), p.WorkQueues)...)
	problems = append(problems, preflight.CheckLengths(p)...)
	problems = append(problems, preflight.CheckDefinition(p)...)
	problems = append(problems, preflight.CheckPolicies(p)...)
	for name, workQueue := range p.WorkQueues {
		problems = append(problems, preflight.CheckWorkQueue(p.Names(), name, workQueue)...)
	}
	return problems
}

// warnOfDisowned says that a queue that is not declared any more is not deleted.
func warnOfDisowned(p pipeline.Pipeline, prior *pipeline.Pipeline, resp *resource.ModifyPlanResponse) {
	if prior == nil {
		return
	}
	for name, before := range prior.WorkQueues {
		if after, stays := p.WorkQueues[name]; stays && before.Declare && !after.Declare {
			resp.Diagnostics.AddAttributeWarning(path.Root("work_queues").AtMapKey(name), "Work queue is given up",
				fmt.Sprintf("Queue %q is not declared any more, so it leaves the topology of the pipeline. It is not deleted: from now on it is yours.", name))
		}
	}
}

// warnOfDestroy says in the plan which messages will make the destroy fail.
func (r *pipelineResource) warnOfDestroy(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !r.connected() || req.State.Raw.IsNull() {
		return
	}
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	p, diags := state.pipeline(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if state.OnDestroy.ValueString() == onDestroyRetain {
		return
	}
	r.session.Leaves(p.Vhost, p.Name)
	vhost, err := r.session.Listing(ctx, p.Vhost)
	if err != nil {
		return // Delete looks again, and is the one that refuses.
	}
	if attached := pipeline.Attached(p.Names(), vhost.Topology); len(attached) > 0 {
		resp.Diagnostics.AddWarning("Queues are attached to the pipeline", "Destroy refuses as long as these queues are attached by a rabbitmq_retry_attachment that is not destroyed first:\n"+report.Bullets(attached))
	}
	holdings, err := r.session.Applier.Contents(ctx, p.Vhost, ownQueues(p), atRisk(p, vhost))
	if err != nil || len(holdings) == 0 {
		return
	}
	resp.Diagnostics.AddWarning("Destroying the pipeline would lose messages", report.Refusal(holdings))
}

func ownQueues(p pipeline.Pipeline) []string {
	var queues []string
	for queue := range pipeline.Expand(p).Queues {
		queues = append(queues, queue)
	}
	return queues
}

// specifications turns a plan and, if there is one, the state before it into specifications.
func specifications(ctx context.Context, plan model, priorModel *model) (pipeline.Pipeline, *pipeline.Pipeline, diag.Diagnostics) {
	p, diags := plan.pipeline(ctx)
	if priorModel == nil {
		return p, nil, diags
	}
	prior, more := priorModel.pipeline(ctx)
	diags.Append(more...)
	return p, &prior, diags
}
