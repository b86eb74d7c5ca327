package retrypipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Delete removes the pipeline if that loses no message; otherwise everything stays as it is.
func (r *pipelineResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	p, diags := state.pipeline(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(r.requireConnection()...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.Writing()
	client := r.session.Client
	all, err := client.List(ctx, p.Vhost)
	if broker.IsNotFound(err) {
		if gone, goneErr := client.VhostGone(ctx, p.Vhost); gone && goneErr == nil {
			return
		}
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot delete the pipeline", fmt.Sprintf("Vhost %q could not be listed, so nothing was deleted: %s", p.Vhost, err))
		return
	}
	err = client.Remove(ctx, broker.Change{
		Vhost:       p.Vhost,
		All:         all,
		Live:        topology.Disowned(topology.Owned(p, all), p, nil),
		HeldIn:      topology.Unprotected(p, topology.Pipeline{}),
		Published:   declared(p),
		FailedQueue: p.Names().FailedQueue(),
	})
	var notEmpty *broker.KeptError
	switch {
	case errors.As(err, &notEmpty):
		resp.Diagnostics.AddError("Destroying the pipeline would lose messages", refusal(notEmpty.Queues))
	case err != nil:
		resp.Diagnostics.AddError("Cannot delete the pipeline", err.Error())
	}
	resp.Diagnostics.Append(notUndone(err)...)
}
