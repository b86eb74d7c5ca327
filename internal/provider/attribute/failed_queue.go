package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

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
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
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
