package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// WorkQueueType is the type of a pipeline's work queue.
var WorkQueueType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"type":           types.StringType,
	"declare":        types.BoolType,
	"arguments_json": jsontypes.NormalizedType{},
	"attach":         types.StringType,

	"dead_letter_strategy":   types.StringType,
	"policy_definition_json": jsontypes.NormalizedType{},
	"max_attempts":           types.Int64Type,
	"take_over_from":         types.StringType,
	"failed_queue":           FailedQueueType,
}}

// WorkQueueValue is a work queue, with null for settings that have their default.
func WorkQueueValue(w pipeline.WorkQueue) attr.Value {
	return types.ObjectValueMust(WorkQueueType.AttrTypes, map[string]attr.Value{
		"type":           types.StringValue(w.Type),
		"declare":        types.BoolValue(w.Declare),
		"arguments_json": ArgumentsValue(w.Arguments),
		"attach":         types.StringValue(w.Attach),

		"dead_letter_strategy":   TextValue(w.DeadLetterStrategy),
		"policy_definition_json": ArgumentsValue(w.PolicyDefinition),
		"max_attempts":           attemptsValue(w.MaxAttempts),
		"take_over_from":         TextValue(w.TakeOverFrom),
		"failed_queue":           FailedQueueValue(w.Worker().FailedQueue),
	})
}
