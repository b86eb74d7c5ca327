package report

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// DeadLettersDropped warns of a change after which nobody gets what is rejected in these queues.
func DeadLettersDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages will be dropped", fmt.Sprintf(
		"This change takes the dead-letter exchange away from these queues. Until they have another one, "+
			"the broker drops what their consumers reject:\n%s\n\n"+ifMoved+
			"To hand a queue over without a gap, take two steps. First add it to its new owner, and apply. Then remove it here, and apply. "+
			"Another pipeline, or an attachment to one, needs take_over_from for that; between work_queues and an attachment of one pipeline, "+
			"nothing more is needed. The guide \"Moving work queues\" shows both.",
		preflight.Bullets(queues)))
}

// DeadLettersAreDropped warns after an apply of queues that it has detached, and that nothing else has attached since.
func DeadLettersAreDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages are dropped", fmt.Sprintf(
		"These queues have no dead-letter exchange now. Until they get one, the broker drops what their consumers reject:\n%s\n\n"+
			"If the rest of this apply attaches them again, it ends there. Otherwise, attach them to a pipeline, and apply.",
		preflight.Bullets(queues)))
}

// ReleasedUnread warns that nothing is known about queues that an apply has detached.
func ReleasedUnread(queues []string, err error) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages may be dropped", fmt.Sprintf(
		"This change has detached these queues. Whether they still have a dead-letter exchange could not be read: %s.\n%s\n\n"+
			"Look at the queues in RabbitMQ's management UI.",
		err, preflight.Bullets(queues)))
}
