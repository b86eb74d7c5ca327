package delayedexchange_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	resourceType = "rabbitmq_delayed_exchange"
	address      = resourceType + ".events"
)

// accept runs the steps against the provider in this process. At the end, the delayed exchanges are destroyed, and only
// queues that begin with "work" may be left in the vhost.
func accept(t *testing.T, b *brokertest.Broker, times apply.Times, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunAndCheck(t, times, func() error { return acctest.NothingLeft(t, b) }, steps...)
}

// acceptTerraform is accept with Terraform's CLI: see [acctest.RunTerraform].
func acceptTerraform(t *testing.T, b *brokertest.Broker, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunTerraformAndCheck(t, acctest.Quick(), func() error { return acctest.NothingLeft(t, b) }, steps...)
}

// exchangeHCL is the configuration of a delayed exchange with these lines.
func exchangeHCL(b *brokertest.Broker, name string, lines ...string) string {
	return fmt.Sprintf("resource \"rabbitmq_delayed_exchange\" %q {\n  name = %q\n  vhost = %q\n  %s\n}\n",
		strings.NewReplacer(".", "_", "/", "_").Replace(name), name, b.Vhost, strings.Join(lines, "\n  "))
}

func importID(vhost, name string) string { return url.PathEscape(vhost) + "/" + url.PathEscape(name) }

// says matches Terraform's output, wherever it breaks lines.
func says(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)` + strings.ReplaceAll(pattern, " ", `[\s│|]+`))
}

// state checks an attribute.
func state(attribute string, want knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), want)
}

// size checks the number of an attribute's elements.
func size(attribute string, count int) statecheck.StateCheck {
	return state(attribute, knownvalue.MapSizeExact(count))
}

var empty = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

func bind(t *testing.T, b *brokertest.Broker, source, queue, key string, arguments map[string]any) {
	t.Helper()
	b.Bind(t, topology.Binding{Source: source, Destination: queue, RoutingKey: key, Arguments: arguments})
}
