package report

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// Places are the attributes that name the objects in question.
type Places struct{ Missing, Exists path.Path }

// Planned reports what a live vhost has to say to a plan. What the same apply may still mend is a
// warning, one for all objects, since Terraform folds warnings of one summary.
func Planned(f preflight.Findings, at Places) diag.Diagnostics {
	diags := Errors(f.Problems)
	diags.Append(Warnings(f.Warnings)...)
	if f.MissingPipeline {
		diags.AddAttributeWarning(path.Root("pipeline"), "Pipeline does not exist yet", missingPipeline+"\n\nApply fails unless something else in the same apply makes it first.")
	}
	if len(f.Missing) > 0 {
		diags.AddAttributeWarning(at.Missing, "Work queues do not exist yet", missingQueues(f.Missing)+
			"\n\nApply fails unless something else in the same apply makes them first.")
	}
	if len(f.Exists) > 0 {
		diags.AddAttributeWarning(at.Exists, "Objects exist already", existingObjects(f.Exists)+
			"\n\nApply fails unless they are deleted before. To adopt them, import the resource.")
	}
	return diags
}

// Applied reports what stands in the way of a change that is about to begin.
func Applied(f preflight.Findings, at Places) diag.Diagnostics {
	diags := Errors(f.Problems)
	if f.MissingPipeline {
		diags.AddAttributeError(path.Root("pipeline"), "Pipeline does not exist", missingPipeline+"\n\nNothing was changed. Make the pipeline first; where one configuration has both, refer to it: pipeline = rabbitmq_retry_pipeline.orders.name.")
	}
	if len(f.Missing) > 0 {
		diags.AddAttributeError(at.Missing, "Work queues do not exist", missingQueues(f.Missing)+
			"\n\nNothing was changed. Make them first, or have the pipeline make them: declare = true in its work_queues.")
	}
	if len(f.Exists) > 0 {
		diags.AddAttributeError(at.Exists, "Objects exist already", existingObjects(f.Exists)+
			"\n\nNothing was changed. To adopt them, import the resource; otherwise choose another name.")
	}
	return diags
}

const missingPipeline = "The vhost has no retry pipeline of this name."

func missingQueues(queues []string) string {
	return "These work queues are not on the broker:\n" + Bullets(queues)
}

func existingObjects(objects []string) string {
	return "These objects would be created, but they are on the broker already:\n" + Bullets(objects)
}
