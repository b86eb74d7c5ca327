package retryattachment

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

// Create attaches the queue. If it fails, it removes what it made, unless messages would be lost, and
// leaves no state behind.
func (r *attachmentResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	a, diags := plan.compute()
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(r.requireConnection()...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.Writing()
	all, diags := r.listForWrite(ctx, a, nil)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	live, wanted := pipeline.OwnedByAttachment(a, all.Topology), pipeline.ExpandAttachment(a)
	err := r.session.Applier.Create(ctx, apply.Change{
		Vhost: a.Vhost, All: all, Live: live, Wanted: wanted,
	})
	if err != nil {
		resp.Diagnostics.AddError("Cannot attach the queue", fmt.Sprintf("Queue %q was not attached to the pipeline %q.\n\n%s", a.Queue, a.Pipeline, err))
		resp.Diagnostics.Append(r.leftBehind(ctx, a, err)...)
		return
	}
	resp.Diagnostics.Append(attribute.MarkCreated(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// leftBehind reports what is left on the broker, which a cancellation does not change.
func (r *attachmentResource) leftBehind(ctx context.Context, a pipeline.Attachment, err error) diag.Diagnostics {
	var left *apply.NotUndoneError
	if !errors.As(err, &left) {
		return nil
	}
	all, unimportable := r.session.Client.List(context.WithoutCancel(ctx), a.Vhost)
	if unimportable == nil {
		_, unimportable = pipeline.RecoverAttachment(a.Pipeline, a.Vhost, a.Queue, all.Topology)
	}
	return report.LeftBehind("rabbitmq_retry_attachment", attribute.FormatID(a.Vhost, a.Pipeline, a.Queue), unimportable)
}

// listForWrite reads the vhost just before it is changed and reports everything that stands in the
// way, so that nothing is begun that cannot be finished.
func (r *attachmentResource) listForWrite(ctx context.Context, a pipeline.Attachment, prior *pipeline.Attachment) (topology.Vhost, diag.Diagnostics) {
	var diags diag.Diagnostics
	all, err := r.session.Fresh(ctx, a.Vhost)
	switch {
	case broker.IsNotFound(err):
		diags.AddAttributeError(path.Root("vhost"), "Vhost does not exist", report.MissingVhost(a.Vhost)+" Nothing was changed.")
	case err != nil:
		diags.AddError("Cannot read the vhost", fmt.Sprintf("Vhost %q could not be listed, so nothing was changed: %s", a.Vhost, err))
	default:
		diags.Append(report.Applied(preflight.CheckLiveAttachment(a, prior, all), places)...)
	}
	return all, diags
}
