package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// FailedQueuesStay warns, if there are any, of failed queues that a change does not delete, since others have failed messages
// there: each with the pipelines of those.
func FailedQueuesStay[Name ~string](staying map[string][]Name) diag.Diagnostics {
	if len(staying) == 0 {
		return nil
	}
	var lines []string
	for _, queue := range slices.Sorted(maps.Keys(staying)) {
		var users []string
		for _, name := range staying[queue] {
			users = append(users, fmt.Sprintf("%q", name))
		}
		lines = append(lines, fmt.Sprintf("%q: work queues of %s", queue, strings.Join(users, ", ")))
	}
	return diag.Diagnostics{diag.NewWarningDiagnostic("Failed queues of others are not deleted", fmt.Sprintf(
		"Other work queues have their failed messages in these queues. "+
			"They stay, with their messages, and nothing here manages them any more:\n%s",
		preflight.Bullets(lines)))}
}
