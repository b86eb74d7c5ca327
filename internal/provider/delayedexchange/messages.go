package delayedexchange

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// remedy says how a queue gets empty.
func remedy(e delayed.Exchange, queue string) string {
	switch n := e.Names(); queue {
	case n.UnroutedQueue():
		return "rabbitmq-retry failed replays, exports and deletes these messages, with --queue."
	case n.Refused():
		return owner.RefusedRemedy(n.DeliverExchange())
	}
	return "keep the sidecar running until all delayed messages are due."
}

func precisionReplaced() diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("timeouts").AtName("update"), "The old levels stay for another apply",
		"The new precision keeps no level of the old one. Workers get the new precision after this apply, and until then "+
			"would find none of their levels. So this apply does not wait for the old levels, which stay in retired_levels. "+
			"Give the workers their new configuration, then apply again.")
}

// bound describes the bindings of others to the exchange that delivers.
func bound(n delayed.Names, bindings []topology.Binding) *owner.InUse {
	listed := preflight.BulletsOf(bindings)
	var destinations []string
	for _, b := range bindings {
		destinations = append(destinations, b.Destination)
	}
	return &owner.InUse{
		Summary: "Queues are bound to the delayed exchange",
		Planned: fmt.Sprintf("If these bindings from %q, which routes due messages, are still there, the destroy fails, even with "+
			"force_destroy:\n%s\n\nRemove them first, unless the same apply does.", n.DeliverExchange(), listed),
		Applied: fmt.Sprintf("Others are bound to %q, which routes due messages:\n%s\n\n"+
			"The delayed exchange was not deleted. Remove these bindings first.", n.DeliverExchange(), listed),
		Waited: fmt.Sprintf("others were bound to %q while the destroy waited: %s. The delayed exchange was not deleted",
			n.DeliverExchange(), strings.Join(destinations, ", ")),
	}
}
