package exchange

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
)

var refusals = []plain.Refusal{
	plain.Refused("type", `^(unknown|invalid) exchange type`, "Correct type, or enable the plugin that adds this type of exchange."),
	plain.RefusedArgument(),
}

func unknownType(wanted string, all []string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("type"), "Unknown exchange type", fmt.Sprintf(
		"The broker has no exchange type %q. Set type to one that it has: %s. Or first enable the plugin that adds the type.",
		wanted, strings.Join(all, ", ")))
}

// recreated warns of a change that the broker cannot make in place.
func recreated(m model) diag.Diagnostic {
	advice := ""
	if _, has := m.Object().Arguments["alternate-exchange"]; has {
		advice = " A policy with the key alternate-exchange changes the alternate exchange without a re-creation."
	}
	return diag.NewAttributeWarningDiagnostic(path.Root("name"), "Exchange will be re-created", fmt.Sprintf(
		"RabbitMQ cannot change an exchange. The apply deletes exchange %q and creates it again with all its bindings. "+
			"The broker refuses or drops what is published to it meanwhile.%s", m.Name.ValueString(), advice))
}
