package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

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
	makeFailedQueues = "\n\nNothing was changed. Make them first, or leave declare_failed_queue out: they are created then."

	orDeletedBefore = "\n\nIf nothing deletes them first, as a replacement does, apply fails. "
	ifMoved         = "If only the resource's address or for_each key changed, write a moved block. "
	orImported      = ifMoved + "To adopt them, import the resource."
	notImportable   = "They cannot be imported: %s."
	importThem      = "\n\nNothing was changed. " + ifMoved +
		"To adopt them, import the resource; otherwise choose another name."
	deleteThem = "\n\nNothing was changed. They cannot be imported: %s. " +
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
	return "These queues are to get failed messages with declare_failed_queue = false, and are not on the broker:\n" +
		preflight.Bullets(queues)
}

func existingFailedQueues(queues []string) string {
	return "These queues would be created to get failed messages, but exist already:\n" + preflight.Bullets(queues) +
		"\n\nIf they are meant, write declare_failed_queue = false: they stay somebody else's. Otherwise choose other names."
}

func existingObjects(objects []string) string {
	return "These objects would be created, but they are on the broker already:\n" + preflight.Bullets(objects)
}
