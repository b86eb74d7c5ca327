package retrypipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// What a destroy does.
const (
	onDestroyDelete = "delete"
	onDestroyRetain = "retain"
)

// Delete removes the pipeline if that loses no message; otherwise everything stays as it is.
func (r *pipelineResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || state.OnDestroy.ValueString() == onDestroyRetain {
		return
	}
	p, diags := state.pipeline(ctx)
	resp.Diagnostics.Append(diags...)
	drain, diags := state.Timeouts.Delete(ctx, 0)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(r.requireConnection()...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.Writing()
	all, err := r.session.Fresh(ctx, p.Vhost)
	if broker.IsNotFound(err) {
		if gone, goneErr := r.session.Client.VhostGone(ctx, p.Vhost); gone && goneErr == nil {
			return
		}
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot delete the pipeline", fmt.Sprintf("Vhost %q could not be listed, so nothing was deleted: %s", p.Vhost, err))
		return
	}
	resp.Diagnostics.Append(refuseWhileAttached(p, all.Topology)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(r.remove(ctx, p, all, drain, state.ForceDestroy.ValueBool())...)
	}
}

func (r *pipelineResource) remove(ctx context.Context, p pipeline.Pipeline, all topology.Vhost, drain time.Duration, force bool) diag.Diagnostics {
	remove := r.session.Applier.Remove
	if force {
		remove = r.session.Applier.ForceRemove
	}
	err := remove(ctx, apply.Change{
		Vhost:        p.Vhost,
		All:          all,
		Live:         destroyed(p, all.Topology),
		SharedQueues: declared(p),
		CatchAll:     p.Names().FailedQueue(),
		Guard:        pipeline.Guard(p),
		Drain:        drain,
		Recheck:      r.recheck(p),
		Waiting:      report.LogWaiting(ctx),
	})
	var diags diag.Diagnostics
	var notEmpty *apply.KeptError
	switch {
	case errors.As(err, &notEmpty):
		diags.AddError("Destroying the pipeline would lose messages", report.Refusal(notEmpty.Queues))
	case err != nil:
		diags.AddError("Cannot delete the pipeline", err.Error())
	}
	diags.Append(report.NotUndone(err)...)
	return diags
}

// destroyed is what a destroy deletes.
func destroyed(p pipeline.Pipeline, vhost topology.Topology) topology.Topology {
	return pipeline.WithoutReleasedQueues(pipeline.Owned(p, vhost), p, nil, vhost)
}

// atRisk lists the work queues whose pending dead letters a destroy would delete.
func atRisk(p pipeline.Pipeline, vhost topology.Vhost) []string {
	return topology.DeadLettersAtRisk(destroyed(p, vhost.Topology), topology.Topology{}, vhost, declared(p))
}

// recheck reads the vhost again after a wait: queues may have been attached meanwhile.
func (r *pipelineResource) recheck(p pipeline.Pipeline) func(context.Context) (topology.Vhost, topology.Topology, error) {
	return func(ctx context.Context) (topology.Vhost, topology.Topology, error) {
		all, err := r.session.Fresh(ctx, p.Vhost)
		if attached := pipeline.Attached(p.Names(), all.Topology); err == nil && len(attached) > 0 {
			err = fmt.Errorf("queues were attached while the destroy waited: %s. Nothing was deleted", strings.Join(attached, ", "))
		}
		return all, destroyed(p, all.Topology), err
	}
}

// refuseWhileAttached keeps a pipeline that queues of other configurations need.
func refuseWhileAttached(p pipeline.Pipeline, vhost topology.Topology) diag.Diagnostics {
	var diags diag.Diagnostics
	if attached := pipeline.Attached(p.Names(), vhost); len(attached) > 0 {
		diags.AddError("Queues are attached to the pipeline",
			"These queues were attached by a rabbitmq_retry_attachment:\n"+report.Bullets(attached)+"\n\nNothing was deleted, since what they reject would be lost. Destroy the attachments first. "+
				"What is left of one that no state has is the policy retry/"+p.Name+"/attachment/QUEUE, or a binding from "+p.Names().ReturnExchange()+" with the argument "+pipeline.AttachmentArgument+".")
	}
	return diags
}
