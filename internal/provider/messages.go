package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

func missing(attribute string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(attribute), "Missing provider configuration",
		fmt.Sprintf("Set %s in the provider block, or the environment variable %s.", attribute, environment[attribute]))
}

func invalidInsecure(value string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("insecure"), "Invalid RABBITMQ_INSECURE",
		fmt.Sprintf("The environment variable RABBITMQ_INSECURE is %q; write true or false.", value))
}

func invalid(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Invalid provider configuration",
		fmt.Sprintf("The connection to RabbitMQ cannot be set up: %s.", err))
}
