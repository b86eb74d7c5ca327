package retrypipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
)

// Validate checks each attribute by itself, if its value is known. The plan has the defaults, and checks combinations.
func (m model) Validate(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics
	if attribute.Known(m.Name) {
		diags.Append(report.Errors(rules.Pipeline.CheckName(m.Name.ValueString()))...)
	}
	diags.Append(m.validateSchedule(ctx)...)
	if attribute.FullyKnown(ctx, m.RetryOn) {
		var reasons []string
		diags.Append(m.RetryOn.ElementsAs(ctx, &reasons, false)...)
		diags.Append(report.Errors(preflight.CheckRetryOn(reasons))...)
	}
	workQueues, known, more := m.validateWorkQueues(ctx)
	diags.Append(more...)
	if known && attribute.Known(m.MaxAttempts) && attribute.Known(m.Delays) {
		problems := preflight.CheckSchedule(int(m.MaxAttempts.ValueInt64()), len(m.Delays.Elements()), workQueues)
		diags.Append(report.Errors(problems)...)
	}
	_, more = attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition_json"))
	diags.Append(more...)
	return diags
}

func (m model) validateSchedule(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics
	if attribute.Known(m.MaxAttempts) {
		diags.Append(report.Errors(rules.CheckAttempts(problem.Path{"max_attempts"}, m.MaxAttempts.ValueInt64()))...)
	}
	if attribute.Known(m.MaxAge) {
		diags.Append(report.Errors(rules.CheckMaxAge(problem.Path{"max_age"}, m.MaxAge.ValueString()))...)
	}
	if i := slices.IndexFunc(m.Delays.Elements(), attr.Value.IsNull); i >= 0 {
		return append(diags, nullDelay(i))
	}
	if attribute.FullyKnown(ctx, m.Delays) {
		var delays []string
		diags.Append(m.Delays.ElementsAs(ctx, &delays, false)...)
		diags.Append(report.Errors(rules.CheckDelays(delays))...)
	}
	return diags
}

// validateWorkQueues returns the work queues that it could check, and whether these are all.
func (m model) validateWorkQueues(ctx context.Context) (checked map[string]pipeline.WorkQueue, all bool, diags diag.Diagnostics) {
	if m.WorkQueues.IsUnknown() || m.WorkQueues.IsNull() {
		return nil, m.WorkQueues.IsNull(), nil
	}
	elements := m.WorkQueues.Elements()
	for _, name := range slices.Sorted(maps.Keys(elements)) {
		if elements[name].IsNull() {
			return nil, false, diag.Diagnostics{nullWorkQueue(name)}
		}
	}
	if !attribute.FullyKnown(ctx, m.WorkQueues) {
		return nil, false, nil
	}
	checked, diags = m.workQueues(ctx)
	for _, name := range slices.Sorted(maps.Keys(checked)) {
		diags.Append(report.Errors(preflight.CheckWorkQueue(pipeline.Names(m.Name.ValueString()), name, checked[name]))...)
	}
	return checked, len(checked) == len(elements), diags
}
