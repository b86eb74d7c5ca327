package retryattachment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

// Delete detaches the queue if that loses no message.
func (r *attachmentResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	a, diags := state.attachment()
	resp.Diagnostics.Append(diags...)
	drain, diags := state.Timeouts.Delete(ctx, 0)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(r.requireConnection()...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.Writing()
	all, err := r.session.Fresh(ctx, a.Vhost)
	if broker.IsNotFound(err) {
		if gone, goneErr := r.session.Client.VhostGone(ctx, a.Vhost); gone && goneErr == nil {
			return
		}
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot detach the queue", fmt.Sprintf("Vhost %q could not be listed, so nothing was changed: %s", a.Vhost, err))
		return
	}
	resp.Diagnostics.Append(r.change(ctx, all, a, nil, drain)...)
}
