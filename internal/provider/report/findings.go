package report

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// Places are the attributes that name the objects in question.
type Places struct{ Missing, Exists path.Path }

// Planned reports what a live vhost means for a plan. What the same apply may still solve is a warning, one
// for all objects, since Terraform folds warnings of one summary. OwnersMayGo says that the pipelines which have a work
// queue may be destroyed by it.
func Planned(f preflight.Findings, at Places, ownersMayGo bool) diag.Diagnostics {
	diags := Errors(f.Problems)
	diags.Append(Warnings(f.Warnings)...)
	if ownersMayGo {
		diags.Append(Warnings(unlessDestroyed(f.Owned))...)
	} else {
		diags.Append(Errors(f.Owned)...)
	}
	if f.MissingPipeline {
		diags.AddAttributeWarning(pipelinePath, "Pipeline does not exist yet", missingPipeline+orMadeBefore)
	}
	if len(f.Missing) > 0 {
		diags.AddAttributeWarning(at.Missing, "Work queues do not exist yet", missingQueues(f.Missing)+orAllMadeBefore)
	}
	if len(f.Declared) > 0 {
		diags.AddAttributeWarning(at.Missing, declaredSummary, existingWorkQueues(f.Declared)+orAttached)
	}
	if len(f.MissingFailedQueues) > 0 {
		diags.AddAttributeWarning(at.Missing, "Failed queues do not exist yet", missingFailedQueues(f.MissingFailedQueues)+orAllMadeBefore)
	}
	if len(f.FailedQueues) > 0 {
		diags.AddAttributeWarning(at.Missing, failedSummary, existingFailedQueues(f.FailedQueues)+orSomebodyElses)
	}
	if len(f.Exists) > 0 {
		diags.AddAttributeWarning(at.Exists, existSummary, existingObjects(f.Exists)+wayOutOfPlan(f))
	}
	return diags
}

// Applied reports what stands in the way of a change that is about to begin.
func Applied(f preflight.Findings, at Places) diag.Diagnostics {
	diags := Errors(slices.Concat(f.Problems, f.Owned))
	if f.MissingPipeline {
		diags.AddAttributeError(pipelinePath, "Pipeline does not exist", missingPipeline+makePipeline)
	}
	if len(f.Missing) > 0 {
		diags.AddAttributeError(at.Missing, "Work queues do not exist", missingQueues(f.Missing)+makeQueues)
	}
	if len(f.Declared) > 0 {
		diags.AddAttributeError(at.Missing, declaredSummary, existingWorkQueues(f.Declared)+nothingChanged)
	}
	if len(f.MissingFailedQueues) > 0 {
		diags.AddAttributeError(at.Missing, "Failed queues do not exist", missingFailedQueues(f.MissingFailedQueues)+makeFailedQueues)
	}
	if len(f.FailedQueues) > 0 {
		diags.AddAttributeError(at.Missing, failedSummary, existingFailedQueues(f.FailedQueues)+nothingChanged)
	}
	if len(f.Exists) > 0 {
		diags.AddAttributeError(at.Exists, existSummary, existingObjects(f.Exists)+wayOut(f))
	}
	return diags
}

var pipelinePath = path.Root("pipeline")
