package vhost

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func noDefaultQueueType(version topology.Version) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("default_queue_type"), "RabbitMQ is too old for a default queue type", fmt.Sprintf(
		"The broker is RabbitMQ %d.%d.%d, and ignores the attribute. Remove it, or upgrade to 3.11 or later first.",
		version.Major, version.Minor, version.Patch))
}

func willBeRefused(m model, queues int) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("force_destroy"), "Virtual host has queues", fmt.Sprintf(
		"Queues in virtual host %q: %d. If they are still there, %s", m.Name.ValueString(), queues, remedy))
}

func hasQueues(m model, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("force_destroy"), "Virtual host has queues", fmt.Sprintf(
		"Virtual host %q has these queues:\n%s\n\nNothing was deleted: %s", m.Name.ValueString(), preflight.Bullets(queues), remedy))
}

const remedy = "the destroy fails. Delete the queues first, or set force_destroy = true and apply: " +
	"the destroy then deletes all queues with their messages."
