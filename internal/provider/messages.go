package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

func missing(attribute string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(attribute), "Missing provider configuration",
		fmt.Sprintf("Set %s in the provider block, or the environment variable %s.", attribute, environment[attribute]))
}

func invalidInsecure(value string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("insecure"), "Invalid RABBITMQ_INSECURE",
		fmt.Sprintf("The environment variable RABBITMQ_INSECURE is %q; write true or false.", value))
}

func cannotConnect(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Invalid provider configuration",
		fmt.Sprintf("The connection to RabbitMQ cannot be set up: %s.", err))
}

func userRefused(config broker.Config, err error) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("username"), "RabbitMQ refused the user", fmt.Sprintf(
		"The management API at %s answered 401 to the user %q. "+
			"Set username and password in the provider block, or RABBITMQ_USERNAME and RABBITMQ_PASSWORD; "+
			"and see that the user has one of the tags management, policymaker, monitoring and administrator.\n\n%s",
		config.Endpoint, config.Username, err))
}

func notReached(err error) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("endpoint"), "RabbitMQ's management API cannot be reached", fmt.Sprintf(
		"Check that the endpoint is the URL of the management API (port 15672, or 15671 with TLS; not the AMQP port) "+
			"and that the plugin rabbitmq_management is enabled.\n\n%s",
		err))
}
