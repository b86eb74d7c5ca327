package retrypipeline

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const remedy = "Let the retries finish, then consume or purge what is in the failed queue, and run terraform apply."

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

func unknownOnDestroy(value string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("on_destroy"), "Unknown value of on_destroy",
		fmt.Sprintf("%q is neither \"delete\" nor \"retain\".", value))
}

// Plans.

func queueOfTwoPipelines(queue, other string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(workQueuePath(queue), "Queue of two pipelines", fmt.Sprintf(
		"Queue %q is a work queue of the pipeline %q in this configuration as well. "+
			"A queue belongs to one pipeline: remove it from one of the two.",
		queue, other))
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

func auditFinding(f audit.Finding) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("work_queues"), "Dead-letter audit: "+f.Rule, f.Message+"\n\n"+f.Remedy)
}

func cannotReadRetired(queue string, err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Cannot read a retired queue", fmt.Sprintf("Queue %q: %s", queue, err))
}

// Destroys.

func queuesAttached(p pipeline.Pipeline, queues []string) *entity.InUse {
	listed := preflight.Bullets(queues)
	return &entity.InUse{
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

func noteGarbled(b topology.Binding) *entity.InUse {
	why := fmt.Sprintf(preflight.GarbledNote, b.String(), pipeline.UnboundArgument)
	return &entity.InUse{Summary: "Unreadable note of a deleted binding", Planned: why, Applied: why + "\n\nNothing was deleted.", Waited: why}
}
