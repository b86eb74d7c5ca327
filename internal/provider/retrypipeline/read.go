package retrypipeline

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Read fills the topology from the live broker. Inputs stay as they were configured, except after
// an import, when they are recovered from the definition that the broker keeps.
func (r *pipelineResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	// Terraform versions without identities require it to be set even when the resource is gone.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	if resp.Diagnostics.HasError() || !r.connected() {
		return
	}
	var workQueues []string
	for name := range state.WorkQueues.Elements() {
		workQueues = append(workQueues, name)
	}
	vhost, err := r.session.Near(ctx, state.Vhost.ValueString(), []string{state.Name.ValueString()}, workQueues)
	if err != nil {
		gone, diags := report.ReadFailed(ctx, r.session.Client, state.Vhost.ValueString(), err)
		resp.Diagnostics.Append(diags...)
		if gone {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	imported := state.Delays.IsNull()
	if imported {
		resp.Diagnostics.Append(state.recover(vhost.Topology)...)
		if resp.Diagnostics.HasError() {
			return
		}
	}
	exists, diags := r.refresh(ctx, &state, vhost.Topology)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !exists {
		resp.State.RemoveResource(ctx)
		return
	}
	resp.Diagnostics.Append(attribute.MarkCreated(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// refresh fills the computed attributes from the live vhost; false if nothing of the pipeline is
// left there.
func (r *pipelineResource) refresh(ctx context.Context, m *model, vhost topology.Topology) (bool, diag.Diagnostics) {
	p, diags := m.pipeline(ctx)
	if diags.HasError() {
		return false, diags
	}
	owned := pipeline.Owned(p, vhost)
	if owned.Empty() {
		return false, diags
	}
	p.Retired = nil
	scheduled := pipeline.Expand(p).Queues
	drained := map[string]bool{}
	for queue := range owned.Queues {
		delay, isRetry := p.Names().DelayOf(queue)
		if _, stays := scheduled[queue]; !isRetry || stays {
			continue
		}
		p.Retired = append(p.Retired, delay)
		isDrained, err := r.session.Applier.LooksEmpty(ctx, p.Vhost, queue)
		if err != nil {
			diags.AddError("Cannot read a retired queue", fmt.Sprintf("Queue %q: %s", queue, err))
		}
		drained[queue] = isDrained
	}
	m.Topology = attribute.TopologyValue(owned)
	m.GivesUpAfter = types.StringValue(pipeline.FormatDelay(p.GivesUpAfter()))
	m.Worker = workerValue(p.Worker())
	m.RetiredQueues = retiredValue(p, drained)
	m.setNames()
	return true, diags
}

// recover sets the inputs from what the broker keeps.
func (m *model) recover(vhost topology.Topology) diag.Diagnostics {
	var diags diag.Diagnostics
	p, err := pipeline.Recover(m.Name.ValueString(), m.Vhost.ValueString(), vhost)
	if err != nil {
		diags.AddError("Cannot import the pipeline", fmt.Sprintf("Pipeline %q in vhost %q: %s.", m.Name.ValueString(), m.Vhost.ValueString(), err))
		return diags
	}
	var delays []string
	for _, delay := range p.Delays {
		delays = append(delays, delay.Spelling)
	}
	m.Delays = types.ListValueMust(types.StringType, attribute.StringValues(delays))
	m.MaxAttempts = types.Int64Value(int64(p.MaxAttempts))
	m.MaxAge = ageValue(p.MaxAge.Spelling)
	m.RetryOn = types.SetValueMust(types.StringType, attribute.StringValues(p.RetryOn))
	m.QueueType = types.StringValue(p.QueueType)
	m.PolicyPriority = types.Int64Value(int64(p.PolicyPriority))
	m.PolicyDefinition = attribute.ArgumentsValue(p.PolicyDefinition)
	m.ForceDestroy, m.OnDestroy = types.BoolValue(false), types.StringValue(onDestroyDelete)
	m.WorkQueues = attribute.MapValue(types.ObjectType{AttrTypes: workQueueType}, p.WorkQueues, workQueueValue)
	return diags
}
