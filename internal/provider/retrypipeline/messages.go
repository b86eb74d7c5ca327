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
		return "rabbitmq-retry failed replays, exports and deletes what is in it."
	case slices.Contains(p.DeclaredFailedQueues(), queue):
		return owner.FailedQueueRemedy
	case queue == n.RefusedQueue():
		return owner.RefusedRemedy(n.FailedExchange())
	case n.OwnsQueue(queue):
		return "let the retries finish, with the sidecar running where the pipeline has one."
	case !slices.Contains(p.SharedQueues(), queue):
		return "from there, messages of another pipeline come back to a queue that would be deleted. Let its retries finish, " +
			"or set declare = false for that queue, which then stays."
	}
	return "consume or move its messages and stop its consumers, or set declare = false for it: the queue then stays."
}

func workQueuePath(name string) path.Path { return path.Root("work_queues").AtMapKey(name) }

// Values.

func nullDelay(index int) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("delays").AtListIndex(index), "Invalid delay",
		"The delay is null; write a duration such as \"5s\".")
}

func invalidDelay(index int, err error) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("delays").AtListIndex(index), "Invalid delay", err.Error()+".")
}

func invalidAge(err error) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("max_age"), "Invalid age", err.Error()+".")
}

func nullWorkQueue(name string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(workQueuePath(name), "Null work queue",
		"Write {} for a work queue with default settings.")
}

// Plans.

func workQueuesUnknown(queues []string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("work_queues"), "Rejected messages may be dropped", fmt.Sprintf(
		"The work queues are not known before the apply. If one of these is not among them, it loses its dead-letter exchange, "+
			"and the broker drops what its consumers reject:\n%s\n\n"+
			"Write the names of the queues out, or create what they come from with an apply of its own (-target).",
		preflight.Bullets(queues)))
}

func replacedWithAttachments(at path.Path, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "A pipeline with attached queues would be replaced", fmt.Sprintf(
		"A change of %s replaces the pipeline, and its destroy is refused as long as these queues are attached by a "+
			"rabbitmq_retry_attachment:\n%s\n\n"+
			"Destroy the attachments first, with an apply of its own. To move the queues to another pipeline without a gap, see the guide "+
			"\"Moving work queues\".",
		at, preflight.Bullets(queues)))
}

func unknownTakeOver(queue string) diag.Diagnostic {
	at := workQueuePath(queue)
	return diag.NewAttributeErrorDiagnostic(at, "take_over_from is not known yet", at.AtName("take_over_from").String()+
		" must be known when the plan is made: write the pipeline's name out.")
}

func replacedWithWorkQueues(at path.Path, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "A pipeline with work queues would be replaced", fmt.Sprintf(
		"A change of %s replaces the pipeline, and what is rejected in its work queues between its destroy and its creation is lost:\n%s\n\n"+
			"Keep this resource as it is, and add a second one beside it, whose work queues have take_over_from = the name of this pipeline; "+
			"apply; "+
			"then remove this one and apply again. The guide \"Moving work queues\" has the steps. "+
			"If what is rejected meanwhile may be lost, apply force_destroy = true first, and leave it there.",
		at, preflight.Bullets(queues)))
}

func replacedUnknown(at path.Path, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "A pipeline with work queues might be replaced", fmt.Sprintf(
		"The value of %s is not known before the apply, and another one than now replaces the pipeline, "+
			"with the loss of what is rejected meanwhile in its work queues:\n%s\n\n"+
			"Make the value known to the plan: write it out, or create what it comes from with an apply of its own (-target).",
		at, preflight.Bullets(queues)))
}

func replaced(at path.Path, from string, force bool) diag.Diagnostic {
	detail := "The pipeline is destroyed and re-created."
	if force {
		detail = "force_destroy is set: the pipeline is destroyed with the messages in it and re-created, " +
			"and what is rejected in its work queues in between is lost."
	}
	if force && at.Equal(path.Root("name")) {
		detail += fmt.Sprintf(" With create_before_destroy, which a resource can have from one that refers to it, nothing is lost in between, "+
			"but each work queue needs take_over_from = %q: otherwise apply fails, and changes nothing.", from)
	}
	return diag.NewAttributeWarningDiagnostic(at, "The pipeline is replaced", detail)
}

func scheduleReplaced() diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("timeouts").AtName("update"), "The old retry queues stay for another apply",
		"No delay of the old schedule is in the new one. A worker gets the new schedule after this apply, and until then "+
			"would find none of its delays bound. So this apply does not wait for the old queues: they stay, in retired_queues. "+
			"Give the workers their new configuration, then apply again.")
}

func noLongerManaged(queue string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(workQueuePath(queue), "Work queue is no longer managed", fmt.Sprintf(
		"Queue %q is not declared any more, so it leaves the topology of the pipeline. "+
			"It is not deleted: from now on it is yours.",
		queue))
}

// Destroys.

func queuesAttached(p pipeline.Pipeline, queues []string) *owner.InUse {
	listed := preflight.Bullets(queues)
	return &owner.InUse{
		Summary: "Queues are attached to the pipeline",
		Planned: "Destroy refuses as long as these queues are attached by a rabbitmq_retry_attachment that is not destroyed first:\n" +
			listed,
		Applied: fmt.Sprintf(
			"These queues were attached by a rabbitmq_retry_attachment:\n%s\n\n"+
				"Nothing was deleted, since what they reject would be lost. "+
				"Destroy the attachments first. "+
				"What is left of one that no state has is the policy retry/%s/attachment/QUEUE, "+
				"or a binding from %s with the argument %s.",
			listed, p.Name, p.Names().ReturnExchange(), pipeline.AttachmentArgument),
		Waited: fmt.Sprintf("queues were attached while the destroy waited: %s. Nothing was deleted", strings.Join(queues, ", ")),
	}
}
