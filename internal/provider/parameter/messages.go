package parameter

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

func otherResource(component, resource string) problem.Problem {
	return problem.New(problem.Path{"component"}, "Another resource manages this component",
		"For parameters of the component %q, use the resource %s.", component, resource)
}

func noURI(block, attribute string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(block).AtListIndex(0).AtName(attribute), "Missing "+attribute, fmt.Sprintf(
		"Set %s or %ss, or set %ss_wo and %s.", attribute, attribute, attribute, urisVersion))
}

func severalURIs(block, attribute string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(block).AtListIndex(0).AtName(attribute), "URIs are set twice", fmt.Sprintf(
		"Set only one of %s, %ss and %ss_wo.", attribute, attribute, attribute))
}

func noVersion(block, attribute string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(block).AtListIndex(0).AtName(attribute), "Missing "+urisVersion, fmt.Sprintf(
		"Terraform does not remember %s. Set %s, and increase it with each change of the URIs.", attribute, urisVersion))
}

// plugins are those that know a component.
var plugins = map[string]string{
	broker.ShovelComponent: "rabbitmq_shovel", broker.FederationUpstreamComponent: "rabbitmq_federation",
	"federation-upstream-set": "rabbitmq_federation",
}

// explained names the plugin that a broker lacks.
func explained(component string, err error) error {
	if err == nil || !strings.Contains(err.Error(), "component "+component+" not found") {
		return err
	}
	plugin := plugins[component]
	if plugin == "" {
		return fmt.Errorf("no enabled plugin of the broker has the component %q: %w", component, err)
	}
	return fmt.Errorf("the broker's plugin %s is not enabled. Enable it on each node: rabbitmq-plugins enable %s", plugin, plugin)
}
