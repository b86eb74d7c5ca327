package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// FailedQueueAttributes describe where the failed messages of a work queue go. The text says of what type the queue is.
func FailedQueueAttributes(queueType string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"failed_queue": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Name of a queue that gets the failed messages of this work queue, in place of the pipeline's failed queue. " +
				"Several work queues may share one.",
		},
		"declare_failed_queue": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether `failed_queue` is created and owned here, " + queueType + ". " +
				"Default: `true`. With `false` it exists already, and is somebody else's. " +
				"Setting it to `false` later never deletes the queue.",
		},
	}
}

// CheckFailedQueue checks what the two attributes say, as far as they are known.
func CheckFailedQueue(at path.Path, queue types.String, declare types.Bool) diag.Diagnostics {
	switch {
	case queue.IsUnknown():
	case queue.IsNull() && Known(declare):
		at = at.AtName("declare_failed_queue")
		return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(Shown(at), "declare_failed_queue without failed_queue",
			at.String()+" says whether failed_queue is created here: name that queue, or leave both out.")}
	case !queue.IsNull() && queue.ValueString() == "":
		at = at.AtName("failed_queue")
		return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(Shown(at), "Empty failed queue name",
			at.String()+" is empty. "+
				"Name the queue, or leave failed_queue out: failed messages then go to the pipeline's failed queue.")}
	}
	return nil
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
