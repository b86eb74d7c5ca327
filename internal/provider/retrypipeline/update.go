package retrypipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Update repairs what differs and brings a changed configuration to the broker, in place.
func (r *pipelineResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(plan.resolve(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.Writing()
	resp.Diagnostics.Append(r.update(ctx, plan, state)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	// What is on the broker now, with the inputs as they were: the next plan shows what is left to do.
	if vhost, err := r.session.Client.List(ctx, state.Vhost.ValueString()); err == nil {
		if exists, diags := r.refresh(ctx, &state, vhost); exists && !diags.HasError() {
			resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		}
	}
}

func (r *pipelineResource) update(ctx context.Context, plan, state model) diag.Diagnostics {
	p, prior, diags := specifications(ctx, plan, &state)
	diags.Append(errorsOf(checkSpecification(p))...)
	if diags.HasError() {
		return diags
	}
	all, more := r.listForWrite(ctx, p, prior)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	live := topology.Merge(topology.Owned(*prior, all), topology.Owned(p, all))
	live = topology.Disowned(live, *prior, &p)
	kept, err := r.session.Client.Update(ctx, broker.Change{
		Vhost:   p.Vhost,
		All:     all,
		Changes: topology.Diff(topology.Expand(p), live),
		HeldIn:  topology.Unprotected(*prior, p),
	})
	diags.Append(updateError(err)...)
	diags.Append(reportKept(p, kept)...)
	return diags
}

func updateError(err error) diag.Diagnostics {
	var diags diag.Diagnostics
	var notEmpty *broker.KeptError
	switch {
	case errors.As(err, &notEmpty):
		diags.AddError("The change would lose messages", refusal(notEmpty.Queues))
	case err != nil:
		diags.AddError("Cannot update the pipeline", fmt.Sprintf("The change was begun but not finished; the next plan shows what is left to do.\n\n%s", err))
	}
	return diags
}

// reportKept reports queues that were to be deleted but were not proved to be empty. For a retired
// queue that is an ordinary event, and the next plan proposes its removal again.
func reportKept(p topology.Pipeline, kept map[string]string) diag.Diagnostics {
	var diags diag.Diagnostics
	others := maps.Clone(kept)
	retired := map[string]string{}
	for queue, why := range kept {
		if _, isRetry := p.Names().DelayOf(queue); isRetry {
			retired[queue] = why
			delete(others, queue)
		}
	}
	if len(retired) > 0 {
		diags.AddWarning("Retired queues are kept", "These queues were not deleted, since they are not proved to be empty:\n"+
			broker.Describe(retired)+"\n\nThey go on draining; a later plan proposes their removal again.")
	}
	if len(others) > 0 {
		diags.AddError("Work queues are not empty", refusal(others))
	}
	return diags
}
