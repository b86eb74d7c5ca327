package retrypipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
)

// remedy says how a queue gets empty, or how the change is possible without that.
func remedy(p pipeline.Pipeline, queue string) string {
	n := p.Names()
	switch {
	case queue == n.FailedQueue():
		return "rabbitmq-retry failed replays, exports and deletes these messages."
	case slices.Contains(p.DeclaredFailedQueues(), queue):
		return owner.FailedQueueRemedy
	case queue == n.RefusedQueue():
		return owner.RefusedRemedy(n.FailedExchange())
	case n.OwnsQueue(queue):
		return "let the retries finish. If the pipeline has a sidecar, keep it running."
	case !slices.Contains(p.SharedQueues(), queue):
		return "messages of another pipeline wait there, and return to a work queue that would be deleted. " +
			"Let that pipeline's retries finish. Or set declare = false for the work queue, which then stays."
	}
	return "consume or move its messages, and stop its consumers. Or set declare = false for the queue, which then stays."
}

func workQueuePath(name string) path.Path { return path.Root("work_queues").AtMapKey(name) }

// Values.

func nullDelay(index int) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("delays").AtListIndex(index), "Invalid delay",
		"The delay is null. Write a duration such as \"5s\".")
}

func nullWorkQueue(name string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(workQueuePath(name), "Null work queue",
		"Write {} for a work queue with default settings.")
}

// Plans.

func workQueuesUnknown(queues []string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("work_queues"), "Rejected messages might be dropped", fmt.Sprintf(
		"The work queues are not known before the apply. If one of these queues is not among them, it loses its dead-letter exchange, "+
			"and the broker drops its rejected messages:\n%s\n\n"+
			"Write the names of the queues out, or first create the resource that they come from, with terraform apply -target.",
		preflight.Bullets(queues)))
}

func replacedWithAttachments(at path.Path, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "A pipeline with attached queues would be replaced", fmt.Sprintf(
		"A change of %s replaces the pipeline. The destroy fails while a rabbitmq_retry_attachment attaches these queues:\n%s\n\n"+
			"Destroy the attachments first, in a separate apply. To move the queues to another pipeline without a gap, see the guide "+
			"\"Changing, moving, importing, destroying\".",
		at, preflight.Bullets(queues)))
}

func unknownTakeOver(queue string) diag.Diagnostic {
	at := workQueuePath(queue)
	return diag.NewAttributeErrorDiagnostic(at, "take_over_from is not known yet", at.AtName("take_over_from").String()+
		" must be known when the plan is made: write the pipeline's name out.")
}

func replacedWithWorkQueues(at path.Path, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "A pipeline with work queues would be replaced", fmt.Sprintf(
		"A change of %s replaces the pipeline. Messages that are rejected in its work queues between destroy and creation are lost:\n%s\n\n"+
			"Keep this resource as it is. Add a second one, whose work queues have take_over_from = the name of this pipeline, and apply. "+
			"Then remove this one and apply again. The guide \"Changing, moving, importing, destroying\" has the steps. "+
			"If these messages can be lost, first apply force_destroy = true, and leave it set.",
		at, preflight.Bullets(queues)))
}

func replacedUnknown(at path.Path, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "A pipeline with work queues might be replaced", fmt.Sprintf(
		"The value of %s is not known before the apply. If it changes, the pipeline is replaced, "+
			"and messages that are rejected in its work queues meanwhile are lost:\n%s\n\n"+
			"Write the value out, or first create the resource that it comes from, with terraform apply -target.",
		at, preflight.Bullets(queues)))
}

func replaced(at path.Path, from string, force bool) diag.Diagnostic {
	detail := "The pipeline is destroyed and re-created."
	if force {
		detail = "Since force_destroy is set, the pipeline is destroyed with its messages and re-created. " +
			"Messages that are rejected in its work queues in between are lost."
	}
	if force && at.Equal(path.Root("name")) {
		detail += fmt.Sprintf(" With create_before_destroy, which a resource inherits from a resource that refers to it, "+
			"nothing is lost in between. Each work queue then needs take_over_from = %q. Otherwise, apply fails, and changes nothing.", from)
	}
	return diag.NewAttributeWarningDiagnostic(at, "The pipeline is replaced", detail)
}

func scheduleReplaced() diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("timeouts").AtName("update"), "The old retry queues stay for another apply",
		"The new schedule keeps no delay of the old one. Workers get the new schedule after this apply, and until then "+
			"would find no queue for their delays. So this apply does not wait for the old queues, which stay in retired_queues. "+
			"Give the workers their new configuration, then apply again.")
}

func noLongerManaged(queue string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(workQueuePath(queue), "Work queue is no longer managed", fmt.Sprintf(
		"Queue %q is no longer declared, so it leaves the topology of the pipeline. "+
			"It is not deleted. From now on, you own it.",
		queue))
}

// Destroys.

func queuesAttached(p pipeline.Pipeline, queues []string) *owner.InUse {
	listed := preflight.Bullets(queues)
	return &owner.InUse{
		Summary: "Queues are attached to the pipeline",
		Planned: "The destroy fails unless the rabbitmq_retry_attachment of each of these queues is destroyed first:\n" + listed,
		Applied: fmt.Sprintf(
			"A rabbitmq_retry_attachment attaches each of these queues:\n%s\n\n"+
				"The pipeline was not deleted, since their rejected messages would be lost. "+
				"Destroy the attachments first. "+
				"If no state has an attachment, delete what is left of it: the policy retry/%s/attachment/QUEUE, "+
				"or a binding from %s with the argument %s.",
			listed, p.Name, p.Names().ReturnExchange(), pipeline.AttachmentArgument),
		Waited: fmt.Sprintf("queues were attached while the destroy waited: %s. The pipeline was not deleted", strings.Join(queues, ", ")),
	}
}
