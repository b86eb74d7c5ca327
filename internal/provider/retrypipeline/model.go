package retrypipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	Name        types.String `tfsdk:"name"`
	Vhost       types.String `tfsdk:"vhost"`
	Engine      types.String `tfsdk:"engine"`
	Delays      types.List   `tfsdk:"delays"`
	MaxAttempts types.Int64  `tfsdk:"max_attempts"`
	MaxAge      types.String `tfsdk:"max_age"`
	RetryOn     types.Set    `tfsdk:"retry_on"`
	QueueType   types.String `tfsdk:"queue_type"`
	WorkQueues  types.Map    `tfsdk:"work_queues"`

	PolicyPriority   types.Int64          `tfsdk:"policy_priority"`
	PolicyDefinition jsontypes.Normalized `tfsdk:"policy_definition_json"`
	ForceDestroy     types.Bool           `tfsdk:"force_destroy"`
	Timeouts         timeouts.Value       `tfsdk:"timeouts"`

	ID             types.String `tfsdk:"id"`
	Topology       types.Object `tfsdk:"topology"`
	RetiredQueues  types.Map    `tfsdk:"retired_queues"`
	DetachedQueues types.Map    `tfsdk:"detached_queues"`
	attribute.PipelineOutputs
}

func (m model) Identity() []types.String { return []types.String{m.Vhost, m.Name} }

// Center has the pipeline, its work queues and their failed queues.
func (m model) Center() nearby.Center {
	queues := slices.Collect(maps.Keys(m.WorkQueues.Elements()))
	for _, element := range m.WorkQueues.Elements() {
		w, _ := element.(types.Object)
		if failedQueue, _ := attribute.FailedQueue(w.Attributes()["failed_queue"]); failedQueue != "" {
			queues = append(queues, failedQueue)
		}
	}
	return nearby.Center{Pipelines: []string{m.Name.ValueString()}, Queues: queues}
}

func (m model) Lifecycle(ctx context.Context) (owner.Lifecycle, diag.Diagnostics) {
	return owner.LifecycleOf(ctx, m.Timeouts, m.ForceDestroy)
}

// Specification converts known inputs, which were validated. It takes the retired delays from the model.
func (m model) Specification(ctx context.Context) (pipeline.Pipeline, diag.Diagnostics) {
	p := pipeline.Pipeline{
		Name:        m.Name.ValueString(),
		Vhost:       m.Vhost.ValueString(),
		Engine:      m.Engine.ValueString(),
		MaxAttempts: int(m.MaxAttempts.ValueInt64()),
		QueueType:   m.QueueType.ValueString(),

		PolicyPriority: int(m.PolicyPriority.ValueInt64()),
	}
	var delays []string
	diags := m.Delays.ElementsAs(ctx, &delays, false)
	for i, spelling := range delays {
		wait, err := pipeline.ParseDelay(spelling)
		if err != nil {
			diags.AddAttributeError(path.Root("delays").AtListIndex(i), "Invalid delay", err.Error()+".")
		}
		p.Delays = append(p.Delays, pipeline.Delay{Wait: wait, Spelling: spelling})
	}
	diags.Append(m.RetryOn.ElementsAs(ctx, &p.RetryOn, false)...)
	if !m.MaxAge.IsNull() {
		age, err := pipeline.ParseMaxAge(m.MaxAge.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root("max_age"), "Invalid age", err.Error()+".")
		}
		p.MaxAge = pipeline.Delay{Wait: age, Spelling: m.MaxAge.ValueString()}
	}
	workQueues, more := m.workQueues(ctx)
	diags.Append(more...)
	p.WorkQueues = workQueues
	p.PolicyDefinition, more = attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition_json"))
	diags.Append(more...)
	for queue := range m.RetiredQueues.Elements() {
		if delay, named := p.Names().DelayOf(queue); named {
			p.Retired = append(p.Retired, delay)
		}
	}
	p.Detached = slices.Sorted(maps.Keys(m.DetachedQueues.Elements()))
	return p, diags
}

// Imported reports whether only the identity is known.
func (m model) Imported() bool { return m.Delays.IsNull() }

// Recover sets the inputs from the definition that the broker keeps.
func (m *model) Recover(vhost topology.Topology) error {
	p, err := pipeline.Recover(m.Name.ValueString(), m.Vhost.ValueString(), vhost)
	if err != nil {
		return err
	}
	var delays []string
	for _, delay := range p.Delays {
		delays = append(delays, delay.Spelling)
	}
	m.Engine = types.StringValue(p.EngineName())
	m.Delays = types.ListValueMust(types.StringType, attribute.StringValues(delays))
	m.MaxAttempts = types.Int64Value(int64(p.MaxAttempts))
	m.MaxAge = attribute.TextValue(p.MaxAge.Spelling)
	m.RetryOn = types.SetValueMust(types.StringType, attribute.StringValues(p.RetryOn))
	m.QueueType = types.StringValue(p.QueueType)
	m.PolicyPriority = types.Int64Value(int64(p.PolicyPriority))
	m.PolicyDefinition = attribute.ArgumentsValue(p.PolicyDefinition)
	m.ForceDestroy = types.BoolValue(false)
	m.WorkQueues = attribute.MapValue(attribute.WorkQueueType, p.WorkQueues, attribute.WorkQueueValue)
	return nil
}

// retiredValue lists the retired queues, and whether they were drained.
func retiredValue(p pipeline.Pipeline, drained map[string]bool) types.Map {
	values := map[string]attr.Value{}
	for _, delay := range p.Retired {
		queue := p.Names().RetryQueue(delay)
		values[queue] = types.ObjectValueMust(retiredType.AttrTypes, map[string]attr.Value{
			"delay": types.StringValue(pipeline.FormatDelay(delay)), "drained": types.BoolValue(drained[queue]),
		})
	}
	return types.MapValueMust(retiredType, values)
}
