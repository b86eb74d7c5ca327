package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
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
	diags := Errors(slices.Concat(f.Problems, f.Unreadable))
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
	diags := Errors(slices.Concat(f.Problems, f.Owned, f.Unreadable))
	for _, m := range matters(f, at) {
		if m.detail != "" {
			diags.AddAttributeError(m.at, m.summary, m.detail+m.applied)
		}
	}
	return diags
}

var pipelinePath = path.Root("pipeline")

const (
	missingPipeline = "The vhost has no retry pipeline of this name."
	orMadeBefore    = "\n\nApply fails unless something else in the same apply makes it first."
	makePipeline    = "\n\nNothing was changed. " +
		"Make the pipeline first; where one configuration has both, refer to it: pipeline = rabbitmq_retry_pipeline.orders.name."

	orAllMadeBefore = "\n\nApply fails unless something else in the same apply makes them first."
	makeQueues      = "\n\nNothing was changed. " +
		"Make them first, or have the pipeline make them: declare = true in its work_queues."

	orOwnerDestroyed = "\n\nApply fails, and changes nothing here, unless that pipeline is destroyed before."

	orAttached     = "\n\nApply fails with declare = true."
	nothingChanged = "\n\nNothing was changed."

	orSomebodyElses  = "\n\nApply fails unless they are deleted before."
	makeFailedQueues = "\n\nNothing was changed. Make them first, or leave declare = false out of failed_queue: they are created then."

	orDeletedBefore = "\n\nIf nothing deletes them first, as a replacement does, apply fails. "
	ifMoved         = "If only the resource's address or for_each key changed, write a moved block before the apply. "
	orImported      = ifMoved + "To adopt them, import the resource."
	notImportable   = "They cannot be imported: %s."
	importThem      = "\n\nThis resource changed nothing. " + ifMoved +
		"If this apply deletes them at the old address, apply again. To adopt them, import the resource; otherwise choose another name."
	deleteThem = "\n\nThis resource changed nothing. They cannot be imported: %s. " +
		"If they are left over, look into the queues, delete these objects and apply again; otherwise choose another name."
)

func wayOutOfPlan(f preflight.Findings) string {
	if f.NotImportable != "" {
		return orDeletedBefore + fmt.Sprintf(notImportable, f.NotImportable)
	}
	return orDeletedBefore + orImported
}

func wayOut(f preflight.Findings) string {
	if f.NotImportable != "" {
		return fmt.Sprintf(deleteThem, f.NotImportable)
	}
	return importThem
}

// unlessDestroyed are problems with other pipelines that may be gone when the apply comes to this one.
func unlessDestroyed(owned []problem.Problem) []problem.Problem {
	warnings := slices.Clone(owned)
	for i := range warnings {
		warnings[i].Detail += orOwnerDestroyed
	}
	return warnings
}

func missingQueues(queues []string) string {
	return "These work queues are not on the broker:\n" + preflight.Bullets(queues)
}

func existingWorkQueues(attached []string) string {
	return "With declare = true the pipeline creates a work queue and owns it, and these exist already. Leave declare out: " +
		"the pipeline attaches to the queue as it is, with the messages in it.\n\n  " + strings.Join(attached, "\n  ")
}

func missingFailedQueues(queues []string) string {
	return "These queues are to get failed messages with declare = false in failed_queue, and are not on the broker:\n" +
		preflight.Bullets(queues)
}

func existingFailedQueues(queues []string) string {
	return "These queues would be created to get failed messages, but exist already:\n" + preflight.Bullets(queues) +
		"\n\nIf they are meant, write declare = false in failed_queue: they stay somebody else's. Otherwise choose other names."
}

func existingObjects(objects []string) string {
	return "These objects would be created, but they are on the broker already:\n" + preflight.Bullets(objects)
}
