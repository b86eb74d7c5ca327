package retrypipeline

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ValidateConfig checks each attribute by itself, as far as it is known. What several of them say
// together is checked by the plan, which has the defaults too.
func (*pipelineResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if known(m.Name) {
		resp.Diagnostics.Append(errorsOf(topology.CheckName(m.Name.ValueString()))...)
	}
	if known(m.Vhost) && m.Vhost.ValueString() == "" {
		resp.Diagnostics.AddAttributeError(path.Root("vhost"), "Empty vhost", "Name the virtual host, or leave the attribute out for \"/\".")
	}
	if known(m.QueueType) {
		resp.Diagnostics.Append(errorsOf(topology.CheckQueueType(m.QueueType.ValueString()))...)
	}
	m.validateSchedule(ctx, resp)
	if fullyKnown(ctx, m.RetryOn) {
		var reasons []string
		resp.Diagnostics.Append(m.RetryOn.ElementsAs(ctx, &reasons, false)...)
		resp.Diagnostics.Append(errorsOf(topology.CheckRetryOn(reasons))...)
	}
	m.validateWorkQueues(ctx, resp)
	_, diags := parseObject(m.PolicyDefinition, path.Root("policy_definition"))
	resp.Diagnostics.Append(diags...)
	if known(m.OnDestroy) && m.OnDestroy.ValueString() != onDestroyDelete && m.OnDestroy.ValueString() != onDestroyRetain {
		resp.Diagnostics.AddAttributeError(path.Root("on_destroy"), "Unknown value of on_destroy",
			fmt.Sprintf("%q is neither \"delete\" nor \"retain\".", m.OnDestroy.ValueString()))
	}
}

func (m model) validateSchedule(ctx context.Context, resp *resource.ValidateConfigResponse) {
	if m.Delays.IsUnknown() || m.Delays.IsNull() {
		return
	}
	if known(m.MaxAttempts) {
		resp.Diagnostics.Append(errorsOf(topology.CheckAttempts(m.MaxAttempts.ValueInt64(), len(m.Delays.Elements())))...)
	}
	for i, element := range m.Delays.Elements() {
		if element.IsNull() {
			resp.Diagnostics.AddAttributeError(path.Root("delays").AtListIndex(i), "Invalid delay", "The delay is null; write a duration such as \"5s\".")
			return
		}
	}
	if fullyKnown(ctx, m.Delays) {
		var delays []string
		resp.Diagnostics.Append(m.Delays.ElementsAs(ctx, &delays, false)...)
		resp.Diagnostics.Append(errorsOf(topology.CheckDelays(delays))...)
	}
}

func (m model) validateWorkQueues(ctx context.Context, resp *resource.ValidateConfigResponse) {
	if m.WorkQueues.IsUnknown() || m.WorkQueues.IsNull() {
		return
	}
	for name, element := range m.WorkQueues.Elements() {
		if element.IsNull() {
			resp.Diagnostics.AddAttributeError(path.Root("work_queues").AtMapKey(name), "Null work queue", "Write {} for a work queue with default settings.")
			return
		}
	}
	var configured map[string]workQueueModel
	if !fullyKnown(ctx, m.WorkQueues) {
		return
	}
	resp.Diagnostics.Append(m.WorkQueues.ElementsAs(ctx, &configured, false)...)
	for name, w := range configured {
		workQueue, diags := w.workQueue(path.Root("work_queues").AtMapKey(name))
		resp.Diagnostics.Append(diags...)
		if diags.HasError() {
			continue
		}
		resp.Diagnostics.Append(errorsOf(topology.CheckWorkQueue(topology.Names(m.Name.ValueString()), name, workQueue))...)
	}
}

// nullable is any value of an attribute.
type nullable interface {
	IsNull() bool
	IsUnknown() bool
}

func known(value nullable) bool { return !value.IsNull() && !value.IsUnknown() }

// collection is any value of an attribute that holds others.
type collection interface {
	nullable
	ToTerraformValue(ctx context.Context) (tftypes.Value, error)
}

// fullyKnown tells whether a collection is set and nothing in it is unknown.
func fullyKnown(ctx context.Context, collection collection) bool {
	if !known(collection) {
		return false
	}
	value, err := collection.ToTerraformValue(ctx)
	return err == nil && value.IsFullyKnown()
}
