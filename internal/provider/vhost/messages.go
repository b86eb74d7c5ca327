package vhost

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// keptQueueType is the error of a broker that ignores a change, as RabbitMQ 3.10 does.
func keptQueueType(kind string) error {
	return fmt.Errorf("the broker has kept the default queue type %q: it can set one only when it creates the virtual host. "+
		"Remove default_queue_type, or upgrade the broker", kind)
}

func willBeRefused(m model, queues int) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("force_destroy"), "Virtual host has queues", fmt.Sprintf(
		"Queues in virtual host %q: %d. If they are still there, %s", m.Name.ValueString(), queues, remedy))
}

func hasQueues(m model, queues []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("force_destroy"), "Virtual host has queues", fmt.Sprintf(
		"Virtual host %q has these queues:\n%s\n\nThe virtual host was not deleted: %s", m.Name.ValueString(), preflight.Bullets(queues), remedy))
}

const remedy = "the destroy fails. Delete the queues first, or set force_destroy = true and apply: " +
	"the destroy then deletes all queues with their messages."
