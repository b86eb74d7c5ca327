package report

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// DeadLettersDropped warns of a change after which nobody gets what is rejected in these queues.
func DeadLettersDropped(queues []string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Rejected messages will be dropped", fmt.Sprintf(
		"After this change these queues have no dead-letter exchange, and the broker drops what their consumers reject:\n%s\n\n"+
			"To move a queue to another pipeline without a gap, let that one take it over first: take_over_from, "+
			"as the guide \"Moving work queues\" shows.",
		preflight.Bullets(queues)))
}
