package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// WorkQueueType is the type of a pipeline's work queue.
var WorkQueueType = types.ObjectType{AttrTypes: WorkQueueValue(pipeline.WorkQueue{}).AttributeTypes(Background)}

// WorkQueueValue is a work queue, with null for settings that have their default.
func WorkQueueValue(w pipeline.WorkQueue) types.Object {
	return object(map[string]attr.Value{
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

// AttachAttributes describe how a work queue is attached to a pipeline. The text adds the resource's special rule for
// policy_definition_json.
func AttachAttributes(definition string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"type": TextOneOf(topology.Quorum, "The queue's type: `quorum` (default) or `classic`. "+
			"It must be the queue's real type, since a policy for another type does not apply.", topology.Quorum, topology.Classic),
		"attach": TextOneOf(pipeline.AttachPolicy, "How the queue gets its dead-letter exchange: from a `policy` (default), "+
			"or from `arguments` that the application declares and the provider checks.", pipeline.AttachPolicy, pipeline.AttachArguments),
		"take_over_from": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "Name of the pipeline that has the queue and releases it in a later apply. Remove it after that apply.",
		},
		"dead_letter_strategy": schema.StringAttribute{
			Optional:   true,
			Validators: OneOf(topology.AtLeastOnce, topology.AtMostOnce),
			MarkdownDescription: "`at-least-once` (default for quorum queues) needs a queue without a length limit. " +
				"Classic queues support only `at-most-once`.",
		},
		"policy_definition_json": JSON("More keys for the policy of this queue, as JSON. " + definition),
	}
}

// FailedQueueType is the type of the attribute failed_queue.
var FailedQueueType = types.ObjectType{AttrTypes: map[string]attr.Type{"name": types.StringType, "declare": types.BoolType}}

// FailedQueueAttribute describes the attribute failed_queue. The text queueType names the queue's type.
func FailedQueueAttribute(queueType string) schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Queue that gets the failed messages of this work queue, in place of the pipeline's failed queue. " +
			"Several work queues can share one.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:            true,
				Validators:          NotEmpty("the name is empty. Write one, or remove failed_queue."),
				MarkdownDescription: "Name of the queue.",
			},
			"declare": Flag(true, "Whether this resource creates and owns the queue, "+queueType+". "+
				"Default: `true`. With `false`, the queue must exist already."),
		},
	}
}

// FailedQueue reads the attribute. The name is "" if the work queue has no failed queue of its own; foreign says that another
// owner declares the queue.
func FailedQueue(of attr.Value) (name string, foreign bool) {
	object, _ := of.(types.Object)
	queue, _ := object.Attributes()["name"].(types.String)
	declare, _ := object.Attributes()["declare"].(types.Bool)
	return queue.ValueString(), Known(declare) && !declare.ValueBool()
}

// FailedQueueValue is the attribute's value, null if the work queue has no failed queue of its own.
func FailedQueueValue(of pipeline.WorkerFailedQueue) types.Object {
	if of.Name == "" {
		return types.ObjectNull(FailedQueueType.AttrTypes)
	}
	return types.ObjectValueMust(FailedQueueType.AttrTypes, map[string]attr.Value{
		"name": types.StringValue(of.Name), "declare": types.BoolValue(of.Declare),
	})
}
