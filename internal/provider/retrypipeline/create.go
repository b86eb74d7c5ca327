package retrypipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create makes a pipeline out of objects that do not exist yet. If it fails, it removes what it
// made, unless messages would be lost, and leaves no state behind.
func (r *pipelineResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(plan.resolve(ctx, nil)...)
	p, diags := plan.pipeline(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(report.Errors(checkSpecification(p))...)
	resp.Diagnostics.Append(r.requireConnection()...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.Writing()
	all, diags := r.listForWrite(ctx, p, nil)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	live, wanted := pipeline.Owned(p, all.Topology), pipeline.Expand(p)
	err := r.session.Applier.Create(ctx, apply.Change{
		Vhost: p.Vhost, All: all, Live: live, Wanted: wanted,
		SharedQueues: declared(p), CatchAll: p.Names().FailedQueue(), Guard: pipeline.Guard(p),
	})
	if err != nil {
		resp.Diagnostics.AddError("Cannot create the pipeline", fmt.Sprintf("Pipeline %q in vhost %q was not created.\n\n%s", p.Name, p.Vhost, err))
		resp.Diagnostics.Append(r.leftBehind(ctx, p, err)...)
		return
	}
	resp.Diagnostics.Append(attribute.MarkCreated(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// leftBehind reports what is left on the broker, which a cancellation does not change.
func (r *pipelineResource) leftBehind(ctx context.Context, p pipeline.Pipeline, err error) diag.Diagnostics {
	var left *apply.NotUndoneError
	if !errors.As(err, &left) {
		return nil
	}
	all, unimportable := r.session.Client.List(context.WithoutCancel(ctx), p.Vhost)
	if unimportable == nil {
		_, unimportable = pipeline.Recover(p.Name, p.Vhost, all.Topology)
	}
	return report.LeftBehind("rabbitmq_retry_pipeline", attribute.FormatID(p.Vhost, p.Name), unimportable)
}

// resolve computes what the plan left unknown. Within apply all inputs are known.
func (m *model) resolve(ctx context.Context, prior *model) diag.Diagnostics {
	if !m.inputsKnown(ctx) {
		var diags diag.Diagnostics
		diags.AddError("Unknown input at apply", "This is a bug in the provider: an attribute is still unknown.")
		return diags
	}
	return m.compute(ctx, prior)
}

// listForWrite reads the vhost just before it is changed and reports everything that stands in the
// way, so that nothing is begun that cannot be finished.
func (r *pipelineResource) listForWrite(ctx context.Context, p pipeline.Pipeline, prior *pipeline.Pipeline) (topology.Vhost, diag.Diagnostics) {
	var diags diag.Diagnostics
	all, err := r.session.Fresh(ctx, p.Vhost)
	switch {
	case broker.IsNotFound(err):
		diags.AddAttributeError(path.Root("vhost"), "Vhost does not exist", report.MissingVhost(p.Vhost)+" Nothing was changed.")
		return all, diags
	case err != nil:
		diags.AddError("Cannot read the vhost", fmt.Sprintf("Vhost %q could not be listed, so nothing was changed: %s", p.Vhost, err))
		return all, diags
	}
	diags.Append(report.Applied(preflight.CheckLive(p, prior, all), places)...)
	return all, diags
}
