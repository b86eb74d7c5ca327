package preflight

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// CheckAttachment checks an attachment by itself.
func CheckAttachment(a pipeline.Attachment) []Problem {
	problems := workerconfig.CheckName(a.Pipeline)
	for i := range problems {
		problems[i].Path = Path{"pipeline"}
	}
	if a.Engine == pipeline.EngineNative {
		problems = append(problems, problem(Path{"engine"}, "Queue cannot be attached from outside", nativeAttachment))
	}
	problems = append(problems, checkWorkQueueAt(func(attributes ...any) Path {
		if len(attributes) == 0 {
			return Path{"queue"}
		}
		return attributes
	}, pipeline.Names(a.Pipeline), a.Queue, a.WorkQueue)...)
	if pipeline.CannotBeMarked(a.Queue) {
		// rabbit_mgmt_format:pack_binding_props joins them to a list that is none.
		problems = append(problems, problem(Path{"queue"}, "Queue cannot be attached from outside", tildeInName, a.Queue))
	}
	return append(problems, CheckPolicyDefinition(Path{"policy_definition"}, a.AsPipeline(), a.Queue, a.WorkQueue.PolicyDefinition)...)
}
