package retrypipeline

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// ValidateConfig checks each attribute by itself, as far as it is known. What several of them say
// together is checked by the plan, which has the defaults too.
func (*pipelineResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if attribute.Known(m.Name) {
		resp.Diagnostics.Append(report.Errors(workerconfig.CheckName(m.Name.ValueString()))...)
	}
	if attribute.Known(m.Vhost) && m.Vhost.ValueString() == "" {
		resp.Diagnostics.AddAttributeError(path.Root("vhost"), "Empty vhost", "Name the virtual host, or leave the attribute out for \"/\".")
	}
	if attribute.Known(m.QueueType) {
		resp.Diagnostics.Append(report.Errors(preflight.CheckQueueType(m.QueueType.ValueString()))...)
	}
	m.validateSchedule(ctx, resp)
	if attribute.FullyKnown(ctx, m.RetryOn) {
		var reasons []string
		resp.Diagnostics.Append(m.RetryOn.ElementsAs(ctx, &reasons, false)...)
		resp.Diagnostics.Append(report.Errors(preflight.CheckRetryOn(reasons))...)
	}
	if workQueues, known := m.validateWorkQueues(ctx, resp); known && attribute.Known(m.MaxAttempts) && attribute.Known(m.Delays) {
		resp.Diagnostics.Append(report.Errors(preflight.CheckSchedule(int(m.MaxAttempts.ValueInt64()), len(m.Delays.Elements()), workQueues))...)
	}
	_, diags := attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition"))
	resp.Diagnostics.Append(diags...)
	if attribute.Known(m.OnDestroy) && m.OnDestroy.ValueString() != onDestroyDelete && m.OnDestroy.ValueString() != onDestroyRetain {
		resp.Diagnostics.AddAttributeError(path.Root("on_destroy"), "Unknown value of on_destroy",
			fmt.Sprintf("%q is neither \"delete\" nor \"retain\".", m.OnDestroy.ValueString()))
	}
}

func (m model) validateSchedule(ctx context.Context, resp *resource.ValidateConfigResponse) {
	if m.Delays.IsUnknown() || m.Delays.IsNull() {
		return
	}
	if attribute.Known(m.MaxAttempts) {
		resp.Diagnostics.Append(report.Errors(workerconfig.CheckAttempts(m.MaxAttempts.ValueInt64()))...)
	}
	if attribute.Known(m.MaxAge) {
		resp.Diagnostics.Append(report.Errors(workerconfig.CheckMaxAge(m.MaxAge.ValueString()))...)
	}
	for i, element := range m.Delays.Elements() {
		if element.IsNull() {
			resp.Diagnostics.AddAttributeError(path.Root("delays").AtListIndex(i), "Invalid delay", "The delay is null; write a duration such as \"5s\".")
			return
		}
	}
	if attribute.FullyKnown(ctx, m.Delays) {
		var delays []string
		resp.Diagnostics.Append(m.Delays.ElementsAs(ctx, &delays, false)...)
		resp.Diagnostics.Append(report.Errors(workerconfig.CheckDelays(delays))...)
	}
}

// validateWorkQueues returns what it could check, and whether that is all of them.
func (m model) validateWorkQueues(ctx context.Context, resp *resource.ValidateConfigResponse) (map[string]pipeline.WorkQueue, bool) {
	if m.WorkQueues.IsUnknown() || m.WorkQueues.IsNull() {
		return nil, m.WorkQueues.IsNull()
	}
	for name, element := range m.WorkQueues.Elements() {
		if element.IsNull() {
			resp.Diagnostics.AddAttributeError(path.Root("work_queues").AtMapKey(name), "Null work queue", "Write {} for a work queue with default settings.")
			return nil, false
		}
	}
	var configured map[string]workQueueModel
	if !attribute.FullyKnown(ctx, m.WorkQueues) {
		return nil, false
	}
	workQueues := map[string]pipeline.WorkQueue{}
	resp.Diagnostics.Append(m.WorkQueues.ElementsAs(ctx, &configured, false)...)
	for name, w := range configured {
		workQueue, diags := w.workQueue(name)
		resp.Diagnostics.Append(diags...)
		if diags.HasError() {
			continue
		}
		workQueues[name] = workQueue
		resp.Diagnostics.Append(report.Errors(preflight.CheckWorkQueue(pipeline.Names(m.Name.ValueString()), name, workQueue))...)
	}
	return workQueues, len(workQueues) == len(configured)
}
