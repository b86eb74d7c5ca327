package retrypipeline

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

type workQueueModel struct {
	Type               types.String         `tfsdk:"type"`
	Declare            types.Bool           `tfsdk:"declare"`
	ArgumentsJSON      jsontypes.Normalized `tfsdk:"arguments_json"`
	Attach             types.String         `tfsdk:"attach"`
	DeadLetterStrategy types.String         `tfsdk:"dead_letter_strategy"`
	PolicyDefinition   jsontypes.Normalized `tfsdk:"policy_definition_json"`
	MaxAttempts        types.Int64          `tfsdk:"max_attempts"`
	TakeOverFrom       types.String         `tfsdk:"take_over_from"`
	FailedQueue        types.Object         `tfsdk:"failed_queue"`
}

// workQueue converts known settings, with defaults for settings that are null.
func (w workQueueModel) workQueue(name string) (pipeline.WorkQueue, diag.Diagnostics) {
	at := workQueuePath(name)
	arguments, diags := attribute.ParseObject(w.ArgumentsJSON, at.AtName("arguments_json"))
	definition, more := attribute.ParseObject(w.PolicyDefinition, at.AtName("policy_definition_json"))
	diags.Append(more...)
	if !w.MaxAttempts.IsNull() {
		place := problem.Path{"work_queues", problem.MapKey(name), "max_attempts"}
		diags.Append(report.Errors(rules.CheckAttempts(place, w.MaxAttempts.ValueInt64()))...)
	}
	failedQueue, foreign := attribute.FailedQueue(w.FailedQueue)
	return pipeline.WorkQueue{
		Type:               cmp.Or(w.Type.ValueString(), topology.Quorum),
		Declare:            w.Declare.ValueBool(),
		Arguments:          arguments,
		Attach:             w.Attach.ValueString(),
		DeadLetterStrategy: w.DeadLetterStrategy.ValueString(),
		PolicyDefinition:   definition,
		MaxAttempts:        int(w.MaxAttempts.ValueInt64()),
		TakeOverFrom:       w.TakeOverFrom.ValueString(),
		FailedQueue:        failedQueue,
		ForeignFailedQueue: foreign,
	}, diags
}

// workQueues converts known work queues. It leaves out those with errors.
func (m model) workQueues(ctx context.Context) (map[string]pipeline.WorkQueue, diag.Diagnostics) {
	var models map[string]workQueueModel
	diags := m.WorkQueues.ElementsAs(ctx, &models, false)
	workQueues := make(map[string]pipeline.WorkQueue, len(models))
	for _, name := range slices.Sorted(maps.Keys(models)) {
		workQueue, more := models[name].workQueue(name)
		diags.Append(more...)
		if !more.HasError() {
			workQueues[name] = workQueue
		}
	}
	return workQueues, diags
}

// unknownWorkQueues warns that the plan does not know which work queues stay.
func (m model) unknownWorkQueues(prior *model) diag.Diagnostics {
	if prior == nil || !m.WorkQueues.IsUnknown() || len(prior.WorkQueues.Elements()) == 0 {
		return nil
	}
	return diag.Diagnostics{workQueuesUnknown(slices.Sorted(maps.Keys(prior.WorkQueues.Elements())))}
}

// unknownTakeOvers refuses an unknown take_over_from: the other pipeline's part of the same apply could not be checked.
func (m model) unknownTakeOvers(ctx context.Context) diag.Diagnostics {
	var models map[string]workQueueModel
	if m.WorkQueues.IsUnknown() || m.WorkQueues.ElementsAs(ctx, &models, true).HasError() {
		return nil
	}
	var diags diag.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(models)) {
		if models[name].TakeOverFrom.IsUnknown() {
			diags.Append(unknownTakeOver(name))
		}
	}
	return diags
}
