package retrypipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Update repairs what differs and brings a changed configuration to the broker, in place.
func (r *pipelineResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(plan.resolve(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	resp.Diagnostics.Append(r.requireConnection()...)
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
		if exists, diags := r.refresh(ctx, &state, vhost.Topology); exists && !diags.HasError() {
			resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		}
	}
}

func (r *pipelineResource) update(ctx context.Context, plan, state model) diag.Diagnostics {
	p, prior, diags := specifications(ctx, plan, &state)
	diags.Append(report.Errors(checkSpecification(p))...)
	if diags.HasError() {
		return diags
	}
	all, more := r.listForWrite(ctx, p, prior)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	drain, more := plan.Timeouts.Update(ctx, 0)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	live := pipeline.WithoutReleasedQueues(topology.Merge(pipeline.Owned(*prior, all.Topology), pipeline.Owned(p, all.Topology)), *prior, &p, all.Topology)
	next := wanted(p, live)
	kept, err := r.session.Applier.Update(ctx, apply.Change{
		Vhost:                   p.Vhost,
		All:                     all,
		Live:                    live,
		Wanted:                  next,
		SharedQueues:            declared(*prior, p),
		Guard:                   pipeline.Guard(p),
		RestoresDeadLetterRoute: pipeline.RestoresDeadLetterRoute(*prior, all.Topology),
		Drain:                   drain,
		Waiting:                 report.LogWaiting(ctx),
	})
	diags.Append(updateError(err)...)
	diags.Append(reportKept(kept)...)
	return diags
}

// wanted is what the pipeline expands to. A retired queue is left as it is: it goes as soon as it is
// empty, and making it anew would be refused while it is not.
func wanted(p pipeline.Pipeline, live topology.Topology) topology.Topology {
	expanded := pipeline.Expand(p)
	for _, delay := range p.Retired {
		name := p.Names().RetryQueue(delay)
		if queue, exists := live.Queues[name]; exists {
			expanded.Queues[name] = queue
		}
	}
	return expanded
}

// declared lists the work queues that the pipelines declare, to which others publish.
func declared(pipelines ...pipeline.Pipeline) []string {
	var names []string
	for _, p := range pipelines {
		for name, workQueue := range p.WorkQueues {
			if workQueue.Declare {
				names = append(names, name)
			}
		}
	}
	return names
}

func updateError(err error) diag.Diagnostics {
	var diags diag.Diagnostics
	var notEmpty *apply.KeptError
	switch {
	case errors.As(err, &notEmpty):
		diags.AddError("The change would lose messages", report.Refusal(notEmpty.Queues))
	case err != nil:
		diags.AddError("Cannot update the pipeline", fmt.Sprintf("The change was begun but not finished; the next plan shows what is left to do.\n\n%s", err))
	}
	diags.Append(report.NotUndone(err)...)
	return diags
}

// reportKept reports retired queues that were to be deleted but were not proved to be empty. That is
// an ordinary event, and a later plan proposes their removal again.
func reportKept(kept map[string]string) diag.Diagnostics {
	var diags diag.Diagnostics
	if len(kept) > 0 {
		diags.AddWarning("Retired queues are kept", "These queues were not deleted, since they are not proved to be empty:\n"+
			apply.Describe(kept)+"\n\nThey go on draining; a later plan proposes their removal again.")
	}
	return diags
}
