package retryattachment

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Update repairs what differs and brings changed settings to the broker, in place.
func (r *attachmentResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	a, diags := plan.compute()
	resp.Diagnostics.Append(diags...)
	prior, diags := specification(&state, a)
	resp.Diagnostics.Append(diags...)
	drain, diags := plan.Timeouts.Update(ctx, 0)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	resp.Diagnostics.Append(r.requireConnection()...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.Writing()
	all, diags := r.listForWrite(ctx, a, prior)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(r.change(ctx, all, *prior, &a, drain)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	// What is on the broker now, with the inputs as they were: the next plan shows what is left to do.
	if vhost, err := r.session.Client.List(ctx, a.Vhost); err == nil {
		owned := pipeline.OwnedByAttachment(*prior, vhost.Topology)
		state.Topology = attribute.TopologyValue(owned)
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	}
}

// change leads from the attachment as it was to the next one, nil for none. It is refused as long as
// dead letters that the queue holds would be lost.
func (r *attachmentResource) change(ctx context.Context, all topology.Vhost, prior pipeline.Attachment, next *pipeline.Attachment, drain time.Duration) diag.Diagnostics {
	var wanted topology.Topology
	if next != nil {
		wanted = pipeline.ExpandAttachment(*next)
	}
	live := pipeline.OwnedByAttachment(prior, all.Topology)
	change := apply.Change{
		Vhost:   prior.Vhost,
		All:     all,
		Live:    live,
		Wanted:  wanted,
		Drain:   drain,
		Waiting: report.LogWaiting(ctx),
	}
	var diags diag.Diagnostics
	_, err := r.session.Applier.Update(ctx, change)
	var notEmpty *apply.KeptError
	switch {
	case errors.As(err, &notEmpty):
		diags.AddError("The change would lose messages", report.Refusal(notEmpty.Queues))
	case err != nil:
		diags.AddError("Cannot change the attachment", "The change was begun but not finished; the next plan shows what is left to do.\n\n"+err.Error())
	}
	diags.Append(report.NotUndone(err)...)
	return diags
}
