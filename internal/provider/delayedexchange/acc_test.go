package delayedexchange_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

func TestAccEveryRelease_ApplyThenPlanIsEmpty_ImportThenPlanIsEmpty_DestroyLeavesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "life/cycle %")
	config := exchangeHCL(b, "events", `type = "headers"`, `max_delay = "720h"`, `precision = "1000ms"`, `policy_priority = 7`)
	state := func(attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), value)
	}
	acceptTerraform(t, b,
		resource.TestStep{
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				state("id", knownvalue.StringExact(importID(b.Vhost, "events"))),
				state("deliver_exchange", knownvalue.StringExact("events.deliver")),
				state("inbox_queue", knownvalue.StringExact("events.delay.inbox")),
				state("unrouted_queue", knownvalue.StringExact("events.delay.unrouted")),
				state("levels", knownvalue.MapSizeExact(22)),
				state("levels", knownvalue.MapPartial(map[string]knownvalue.Check{
					"events.delay.1s.4": knownvalue.ObjectExact(map[string]knownvalue.Check{"delay": knownvalue.StringExact("16s")}),
				})),
				state("retired_levels", knownvalue.MapSizeExact(0)),
				state("worker", knownvalue.ObjectExact(map[string]knownvalue.Check{
					"version": knownvalue.Int64Exact(1), "name": knownvalue.StringExact("events"), "vhost": knownvalue.StringExact(b.Vhost),
					"max_delay": knownvalue.StringExact("720h"), "precision": knownvalue.StringExact("1s"),
				})),
			},
		},
		// Imports into an empty state and fails unless the plan has nothing to change.
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
