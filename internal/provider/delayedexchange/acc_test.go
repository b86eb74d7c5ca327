package delayedexchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func TestAccEveryRelease_ApplyThenPlanIsEmpty_ImportThenPlanIsEmpty_DestroyLeavesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "life/cycle %")
	config := exchangeHCL(b, "events", `type = "headers"`, `max_delay = "720h"`, `precision = "1000ms"`, `policy_priority = 7`)
	acceptTerraform(t, b,
		resource.TestStep{
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				state("id", knownvalue.StringExact(importID(b.Vhost, "events"))),
				state("deliver_exchange", knownvalue.StringExact("events.deliver")),
				state("inbox_queue", knownvalue.StringExact("events.delay.inbox")),
				state("unrouted_queue", knownvalue.StringExact("events.delay.unrouted")),
				size("levels", 22),
				state("levels", knownvalue.MapPartial(map[string]knownvalue.Check{
					"events.delay.1s.4": knownvalue.ObjectExact(map[string]knownvalue.Check{"delay": knownvalue.StringExact("16s")}),
				})),
				size("retired_levels", 0),
				state("worker", knownvalue.ObjectExact(map[string]knownvalue.Check{
					"version": knownvalue.Int64Exact(1), "name": knownvalue.StringExact("events"), "vhost": knownvalue.StringExact(b.Vhost),
					"max_delay": knownvalue.StringExact("720h"), "precision": knownvalue.StringExact("1s"),
				})),
			},
		},
		// The step imports into an empty state, and fails unless the plan is empty.
		resource.TestStep{
			Config: config, ResourceName: address, ImportState: true,
			ImportStateKind: resource.ImportBlockWithID,
			ImportStateId:   importID(b.Vhost, "events"),
		},
		resource.TestStep{
			Config: config, ResourceName: address, ImportState: true, ImportStateVerify: true,
			ImportStateVerifyIdentifierAttribute: "name",
			ImportStateId:                        importID(b.Vhost, "events"),
		},
	)
}

func TestAccEveryRelease_NamesWithAnyCharacter(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "ü/ %2F.vhost")
	const name = "events with spaces~%41 ü?(x)|[y]"
	config := strings.Replace(exchangeHCL(b, "events", `max_delay = "1.5s"`), `name = "events"`, `name = "`+name+`"`, 1)
	accept(t, b, acctest.Quick(), resource.TestStep{Config: config}, resource.TestStep{
		Config: config, ResourceName: address, ImportState: true,
		ImportStateKind: resource.ImportBlockWithID,
		ImportStateId:   importID(b.Vhost, name),
	})
}

// The permissions in the guide are enough for all operations of the provider's user.
func TestAccEveryRelease_PermissionsOfTheGuide(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	const own = `^events(\.deliver|\.delay\..+)?$`
	user, password := b.User(t, "policymaker", own, own, own)
	config := func(lines ...string) string {
		return fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password) + exchangeHCL(b, "events", lines...)
	}
	changed := config(`max_delay = "5s"`, `precision = "1s"`, `type = "direct"`, "policy_priority = 7")
	accept(t, b, acctest.Times(),
		resource.TestStep{Config: config(`max_delay = "10s"`)},
		// The unneeded levels are seen to be empty, so the next plan removes them.
		resource.TestStep{Config: changed, PreConfig: func() { levelsAreReportedEmpty(t, b) }, ExpectNonEmptyPlan: true},
		resource.TestStep{
			Config: changed, PreConfig: func() { levelsAreReportedEmpty(t, b) },
			ConfigStateChecks: []statecheck.StateCheck{size("retired_levels", 0)},
		},
	)
}
