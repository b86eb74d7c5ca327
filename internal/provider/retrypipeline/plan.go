package retrypipeline

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// ModifyPlan sets every computed attribute. Planned values are a function of configuration and
// refreshed state alone, since Terraform plans a second time within apply, without a refresh, and
// compares. What is read from the broker here ends in warnings and errors, never in the plan.
func (r *pipelineResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		r.warnOfDestroy(ctx, req, resp)
		return
	}
	var plan, config model
	var prior *model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if !req.State.Raw.IsNull() {
		prior = &model{}
		resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if config.MaxAttempts.IsNull() {
		plan.MaxAttempts = defaultAttempts(plan.Delays)
	}
	inputsKnown := plan.inputsKnown(ctx)
	if inputsKnown {
		resp.Diagnostics.Append(plan.compute(ctx, prior)...)
	} else {
		plan.computePartly(ctx)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	created, diags := attribute.CreatedBefore(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	r.checkDuplicate(plan, prior != nil || !created, resp)
	if inputsKnown {
		r.checkPlan(ctx, plan, prior, resp)
	}
}

// defaultAttempts is one more than there are delays.
func defaultAttempts(delays types.List) types.Int64 {
	if delays.IsUnknown() {
		return types.Int64Unknown()
	}
	return types.Int64Value(int64(len(delays.Elements())) + 1)
}

func (m model) inputsKnown(ctx context.Context) bool {
	return attribute.Known(m.Name) && attribute.Known(m.Vhost) && attribute.Known(m.QueueType) && attribute.Known(m.MaxAttempts) &&
		!m.MaxAge.IsUnknown() && attribute.FullyKnown(ctx, m.Delays) && attribute.FullyKnown(ctx, m.RetryOn) && attribute.FullyKnown(ctx, m.WorkQueues) &&
		(m.Timeouts.IsNull() || attribute.FullyKnown(ctx, m.Timeouts)) && attribute.Known(m.PolicyPriority) && !m.PolicyDefinition.IsUnknown()
}

// compute sets the computed attributes of a model whose inputs are known.
func (m *model) compute(ctx context.Context, prior *model) diag.Diagnostics {
	m.RetiredQueues = types.MapNull(retiredType)
	p, diags := m.pipeline(ctx)
	if diags.HasError() {
		return diags
	}
	waits, more := m.waitsForRetired(ctx)
	diags.Append(more...)
	if !waits {
		p.Retired, more = retiredAfter(ctx, p, prior)
		diags.Append(more...)
	}
	m.Topology = attribute.TopologyValue(pipeline.Expand(p))
	m.GivesUpAfter = types.StringValue(pipeline.FormatDelay(p.GivesUpAfter()))
	m.Worker = workerValue(p.Worker())
	m.RetiredQueues = retiredValue(p, nil)
	m.setNames()
	return diags
}

func (m *model) setNames() {
	n := pipeline.Names(m.Name.ValueString())
	m.DeadLetterExchange = types.StringValue(n.DeadLetterExchange())
	m.InboxQueue = types.StringValue(n.Inbox())
	m.FailedQueue = types.StringValue(n.FailedQueue())
	m.WorkerPermissions = permissionsValue(pipeline.WorkerPermissions(n))
}

// computePartly sets the computed attributes of a model of which some input is known only later.
// Whatever depends on it is unknown, or apply would contradict the plan.
func (m *model) computePartly(ctx context.Context) {
	m.Topology = types.ObjectUnknown(attribute.TopologyType)
	m.DeadLetterExchange, m.InboxQueue, m.FailedQueue = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	m.WorkerPermissions = types.ObjectUnknown(permissionsType)
	m.GivesUpAfter = types.StringUnknown()
	m.Worker = types.ObjectUnknown(workerType)
	m.RetiredQueues = types.MapUnknown(retiredType)
	if !attribute.Known(m.Name) {
		return
	}
	m.setNames()
	m.Topology = attribute.ExchangesValue(pipeline.ExpandExchanges(pipeline.Names(m.Name.ValueString())))
	if attribute.FullyKnown(ctx, m.Delays) && attribute.Known(m.MaxAttempts) && !m.MaxAge.IsUnknown() {
		schedule := *m
		schedule.RetryOn, schedule.WorkQueues = types.SetNull(types.StringType), types.MapNull(types.ObjectType{AttrTypes: workQueueType})
		schedule.PolicyDefinition = jsontypes.NewNormalizedNull()
		if p, diags := schedule.pipeline(ctx); !diags.HasError() {
			m.GivesUpAfter = types.StringValue(pipeline.FormatDelay(p.GivesUpAfter()))
		}
	}
}

// waitsForRetired tells whether the apply itself waits for queues that leave the schedule, and then
// removes them.
func (m *model) waitsForRetired(ctx context.Context) (bool, diag.Diagnostics) {
	if m.Timeouts.IsNull() || m.Timeouts.IsUnknown() {
		return false, nil
	}
	timeout, diags := m.Timeouts.Update(ctx, 0)
	return timeout > 0, diags
}

// retiredAfter lists the delays whose queues have to stay although they are not in the schedule:
// all that the refreshed state has, less those that were seen to be empty when it was read.
func retiredAfter(ctx context.Context, p pipeline.Pipeline, prior *model) ([]time.Duration, diag.Diagnostics) {
	if prior == nil || prior.Name != types.StringValue(p.Name) || prior.Vhost != types.StringValue(p.Vhost) {
		return nil, nil
	}
	listed, diags := prior.retired(ctx)
	var retired []time.Duration
	queues, isMap := prior.Topology.Attributes()["queues"].(types.Map)
	if !isMap {
		return nil, diags
	}
	scheduled := pipeline.Expand(p).Queues
	for queue := range queues.Elements() {
		delay, isRetry := p.Names().DelayOf(queue)
		_, stays := scheduled[queue]
		if isRetry && !stays && !listed[queue].Drained.ValueBool() {
			retired = append(retired, delay)
		}
	}
	return retired, diags
}
