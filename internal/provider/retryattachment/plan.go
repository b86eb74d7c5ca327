package retryattachment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
)

// ValidateConfig checks what is known.
func (*attachmentResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !resp.Diagnostics.HasError() {
		_, diags := attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition"))
		resp.Diagnostics.Append(diags...)
		if attribute.Known(m.Vhost) && m.Vhost.ValueString() == "" {
			resp.Diagnostics.AddAttributeError(path.Root("vhost"), "Empty vhost", "Name the virtual host, or leave the attribute out for \"/\".")
		}
	}
}

// ModifyPlan sets the computed attributes, which are a function of the configuration alone. What is
// read from the broker here ends in warnings and errors, never in the plan.
func (r *attachmentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	var prior *model
	if !req.State.Raw.IsNull() {
		prior = &model{}
		resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if !plan.inputsKnown() {
		plan.Topology = types.ObjectUnknown(attribute.TopologyType)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
		return
	}
	a, diags := plan.compute()
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	created, diags := attribute.CreatedBefore(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !r.connected() {
		return
	}
	resp.Diagnostics.Append(r.checkConfiguration(a, prior != nil || !created)...)
	resp.Diagnostics.Append(r.check(ctx, a, prior)...)
}

// checkConfiguration finds what another resource of this configuration has already. Within one run
// each resource is planned once with what it is to Terraform; a replacement is planned a second time,
// which does not count. No pipeline has a slash in its name.
func (r *attachmentResource) checkConfiguration(a pipeline.Attachment, counts bool) diag.Diagnostics {
	var diags diag.Diagnostics
	if counts && r.session.PlannedBefore(a.Vhost, "attachment/"+a.Queue) {
		diags.AddAttributeError(path.Root("queue"), "Queue attached twice",
			fmt.Sprintf("Another rabbitmq_retry_attachment in this configuration attaches the queue %q of vhost %q as well. Remove one of them.", a.Queue, a.Vhost))
	}
	if other := r.session.Claim(a.Vhost, a.Queue, a.Pipeline); other != "" {
		diags.AddAttributeError(path.Root("queue"), "Queue of two pipelines",
			fmt.Sprintf("Queue %q belongs to the pipeline %q in this configuration as well. A queue belongs to one pipeline: remove it from one of the two.", a.Queue, other))
	}
	return diags
}

// compute sets the computed attributes of a model whose inputs are known.
func (m *model) compute() (pipeline.Attachment, diag.Diagnostics) {
	a, diags := m.attachment()
	diags.Append(report.Errors(preflight.CheckAttachment(a))...)
	if diags.HasError() {
		return a, diags
	}
	m.Topology = attribute.TopologyValue(pipeline.ExpandAttachment(a))
	return a, diags
}

var places = report.Places{Missing: path.Root("queue"), Exists: path.Root("queue")}

// check compares the plan with the broker.
func (r *attachmentResource) check(ctx context.Context, a pipeline.Attachment, priorModel *model) diag.Diagnostics {
	var diags diag.Diagnostics
	r.noteMove(a, priorModel)
	// Within apply, what was listed before may be older than what this run has written.
	if r.session.Stale() {
		return diags
	}
	prior, diags := specification(priorModel, a)
	if diags.HasError() {
		return diags
	}
	if user := r.session.User; len(pipeline.ExpandAttachment(a).Policies) > 0 && !user.CanWritePolicies() {
		diags.AddAttributeError(path.Root("attach"), "User may not write policies",
			fmt.Sprintf("Queues are attached by policy, which needs the tag policymaker, but the user %q has the tags %q. Add it, or write attach = \"arguments\".", user.Name, user.Tags))
	}
	vhost, err := r.session.Near(ctx, a.Vhost, []string{a.Pipeline}, []string{a.Queue})
	switch {
	case broker.IsNotFound(err):
		diags.AddAttributeWarning(path.Root("vhost"), "Vhost does not exist yet", report.MissingVhost(a.Vhost)+" Apply fails unless something else in the same apply makes it first.")
	case err != nil:
		diags.AddError("Cannot read the vhost", fmt.Sprintf("Vhost %q could not be listed to check the plan: %s", a.Vhost, err))
	default:
		found := preflight.CheckLiveAttachment(a, prior, vhost, append(r.session.Leaving(a.Vhost), r.session.Leaving(moves(a))...)...)
		found.MissingPipeline = found.MissingPipeline && !r.session.Plans(a.Vhost, a.Pipeline)
		diags.Append(report.Planned(found, places)...)
	}
	return diags
}

// noteMove remembers the pipeline that a queue leaves for another one.
func (r *attachmentResource) noteMove(a pipeline.Attachment, prior *model) {
	if prior != nil && prior.Queue.ValueString() == a.Queue && prior.Vhost.ValueString() == a.Vhost && prior.Pipeline.ValueString() != a.Pipeline {
		r.session.Leaves(moves(a), prior.Pipeline.ValueString())
	}
}

// moves is where the session remembers the pipelines that one queue leaves, apart from the vhosts.
func moves(a pipeline.Attachment) string { return "queue " + a.Queue + " of " + a.Vhost }

// specification is the attachment as it was, nil if it was none of this queue and pipeline.
func specification(m *model, next pipeline.Attachment) (*pipeline.Attachment, diag.Diagnostics) {
	if m == nil {
		return nil, nil
	}
	prior, diags := m.attachment()
	if prior.Pipeline != next.Pipeline || prior.Vhost != next.Vhost || prior.Queue != next.Queue {
		return nil, diags
	}
	return &prior, diags
}
