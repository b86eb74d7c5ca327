package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// FailedQueueAttributes describe where the failed messages of a work queue go. The text says of what type the queue is.
func FailedQueueAttributes(queueType string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"failed_queue": schema.StringAttribute{
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			MarkdownDescription: "Name of a queue that gets the failed messages of this work queue, in place of the pipeline's failed queue. " +
				"Several work queues may share one.",
		},
		"declare_failed_queue": schema.BoolAttribute{
			Optional:   true,
			Validators: []validator.Bool{boolvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("failed_queue"))},
			MarkdownDescription: "Whether `failed_queue` is created and owned here, " + queueType + ". " +
				"Default: `true`. With `false` it exists already, and is somebody else's. " +
				"Setting it to `false` later never deletes the queue.",
		},
	}
}

// ForeignFailedQueue reports whether the failed queue is somebody else's.
func ForeignFailedQueue(declare types.Bool) bool { return !declare.IsNull() && !declare.ValueBool() }

// DeclareFailedQueueValue is null where it has its default.
func DeclareFailedQueueValue(w pipeline.WorkQueue) types.Bool {
	if w.FailedQueue == "" || w.DeclaresFailedQueue() {
		return types.BoolNull()
	}
	return types.BoolValue(false)
}
