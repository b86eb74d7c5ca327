package report

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// Places are the attributes that name the objects in question.
type Places struct{ Missing, Exists path.Path }

// matter is what a live vhost means for a plan, as a warning, and for a change that is about to begin, as an error. Texts are empty
// where there is nothing to say.
type matter struct {
	at               path.Path
	summary, yet     string // what a plan's summary has more
	detail           string
	planned, applied string // what the detail ends with
}

func matters(f preflight.Findings, at Places) []matter {
	pipeline := ""
	if f.MissingPipeline {
		pipeline = missingPipeline
	}
	return []matter{
		{pipelinePath, "Pipeline does not exist", " yet", pipeline, orMadeBefore, makePipeline},
		{at.Missing, "Work queues do not exist", " yet", listed(missingQueues, f.Missing), orAllMadeBefore, makeQueues},
		{at.Missing, "Work queues exist already", "", listed(existingWorkQueues, f.Declared), orAttached, nothingChanged},
		{at.Missing, "Failed queues do not exist", " yet", listed(missingFailedQueues, f.MissingFailedQueues), orAllMadeBefore, makeFailedQueues},
		{at.Missing, "Failed queues exist already", "", listed(existingFailedQueues, f.FailedQueues), orSomebodyElses, nothingChanged},
		{at.Exists, "Objects exist already", "", listed(existingObjects, f.Exists), wayOutOfPlan(f), wayOut(f)},
	}
}

func listed(text func([]string) string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return text(names)
}

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
	for _, m := range matters(f, at) {
		if m.detail != "" {
			diags.AddAttributeWarning(m.at, m.summary+m.yet, m.detail+m.planned)
		}
	}
	return diags
}

// Applied reports what stands in the way of a change that is about to begin.
func Applied(f preflight.Findings, at Places) diag.Diagnostics {
	diags := Errors(slices.Concat(f.Problems, f.Owned))
	for _, m := range matters(f, at) {
		if m.detail != "" {
			diags.AddAttributeError(m.at, m.summary, m.detail+m.applied)
		}
	}
	return diags
}

var pipelinePath = path.Root("pipeline")
