package retryattachment

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

// remedy is for the failed queue: of the work queue, only pending dead letters matter.
func remedy(pipeline.Attachment, string) string { return entity.FailedQueueRemedy }

var policyUse = entity.PolicyUse{
	At:      path.Root("attach"),
	Why:     "Queues are attached by policy",
	Without: "Without policies, set attach = \"arguments\".",
}

func movedByReplacement(queue, from string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("pipeline"), "The queue would be detached before it is attached again", fmt.Sprintf(
		"A change of pipeline replaces the attachment, and what is rejected in queue %q in between is lost. "+
			"Keep this attachment as it is, and add a second one, or a work queue of the other pipeline, with take_over_from = %q; apply; "+
			"then remove this one and apply again. The guide \"Moving work queues\" has the steps.",
		queue, from))
}

func replacedUnknown(attribute, queue string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(attribute), "The attachment might be replaced", fmt.Sprintf(
		"The value of %s is not known before the apply. If it changes, the attachment is replaced, "+
			"and what is rejected in queue %q in between is lost. "+
			"Make the value known to the plan: write it out, or create what it comes from with an apply of its own (-target).",
		attribute, queue))
}

func unknownTakeOver() diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("take_over_from"), "take_over_from is not known yet",
		"take_over_from must be known when the plan is made: write the pipeline's name out.")
}
