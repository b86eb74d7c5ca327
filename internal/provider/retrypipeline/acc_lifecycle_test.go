package retrypipeline_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const everything = `
  delays       = ["5s", "30s", "30s", "0s", "60s"]
  max_attempts = 9
  retry_on     = ["rejected", "expired"]
  work_queues = {
    "work.created" = {}
    "work.legacy"  = { type = "classic" }
    "paid"         = { declare = true, arguments_json = jsonencode({ x-single-active-consumer = true, note = "a<b" }) }
    "noted"        = { declare = true }
    "old"          = { declare = true, type = "classic" }
  }`

func TestAccEveryRelease_ApplyThenPlanIsEmpty_ImportThenPlanIsEmpty_DestroyLeavesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "life/cycle %")
	b.DeclareQueue(t, "work.created", "quorum", nil)
	b.DeclareQueue(t, "work.legacy", "classic", nil)
	config := pipelineHCL(b, everything)
	acceptTerraform(t, b,
		resource.TestStep{
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("gives_up_after"), knownvalue.StringExact("5m5s")),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("dead_letter_exchange"), knownvalue.StringExact("orders.dlx")),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("worker").AtMapKey("max_attempts"), knownvalue.Int64Exact(9)),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("topology").AtMapKey("queues"), knownvalue.MapSizeExact(9)),
			},
		},
		importBlock(b, config, "orders"),
		isImported(b),
	)
}

func TestAccEveryRelease_ClassicPipelineWithoutWorkQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["1m30s"]`, `queue_type = "classic"`)
	acceptQuickly(t, b,
		resource.TestStep{
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("max_attempts"), knownvalue.Int64Exact(2)),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("topology").AtMapKey("policies"), knownvalue.MapSizeExact(1)),
			},
		},
		importBlock(b, config, "orders"),
	)
}

func TestAccEveryRelease_NamesWithAnyCharacter(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "ü/ %2F.vhost")
	queue := "work orders/créés %41.#*(x)|[y]"
	b.DeclareQueue(t, queue, "quorum", nil)
	config := pipelineLabelled(b, "orders", "orders with spaces.%41 ü?", `delays = ["250ms", "1.5s"]`, `work_queues = { "`+queue+`" = {} }`)
	acceptQuickly(t, b, resource.TestStep{
		Config: config,
	}, importBlock(b, config, "orders with spaces.%41 ü?"))
}

// The names of these pipelines and work queues would be equal if they were joined by dots.
func TestAcc_PoliciesOfTwoPipelinesDoNotCollide(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	twin := func(resourceName, name, queue string) string {
		return pipelineLabelled(b, resourceName, name, `delays = ["5s"]`, fmt.Sprintf("work_queues = { %q = { declare = true } }", queue))
	}
	config := twin("one", "a", "b.dlx.c") + twin("other", "a.dlx.b", "c")
	acceptQuickly(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				for queue, inbox := range map[string]string{"b.dlx.c": "a.inbox", "c": "a.dlx.b.inbox"} {
					reject(t, b, queue, "rejected")
					expectIn(t, b, inbox, "rejected")
				}
			},
			Config: config, ConfigPlanChecks: unchanged,
		},
	)
}
