package retryattachment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
)

// Read fills the topology from the live broker. Inputs stay as they were configured, except after an
// import.
func (r *attachmentResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	// Terraform versions without identities require it to be set even when the resource is gone.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	if resp.Diagnostics.HasError() || !r.connected() {
		return
	}
	vhost, err := r.session.Near(ctx, state.Vhost.ValueString(), []string{state.Pipeline.ValueString()}, []string{state.Queue.ValueString()})
	if err != nil {
		gone, diags := report.ReadFailed(ctx, r.session.Client, state.Vhost.ValueString(), err)
		resp.Diagnostics.Append(diags...)
		if gone {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	if state.Type.IsNull() {
		recovered, err := pipeline.RecoverAttachment(state.Pipeline.ValueString(), state.Vhost.ValueString(), state.Queue.ValueString(), vhost.Topology)
		if err != nil {
			resp.Diagnostics.AddError("Cannot import the attachment", fmt.Sprintf("Queue %q of vhost %q: %s.", state.Queue.ValueString(), state.Vhost.ValueString(), err))
			return
		}
		state.recovered(recovered)
	}
	a, diags := state.attachment()
	resp.Diagnostics.Append(diags...)
	owned := pipeline.OwnedByAttachment(a, vhost.Topology)
	if owned.Empty() {
		resp.State.RemoveResource(ctx)
		return
	}
	resp.Diagnostics.Append(attribute.MarkCreated(ctx, resp.Private)...)
	state.Topology = attribute.TopologyValue(owned)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}
