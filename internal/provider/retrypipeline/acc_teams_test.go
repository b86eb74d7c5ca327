package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

var settled = resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

// Work queues have failed queues of their own, shared or not, declared or not; an import restores it all, and a change of any
// of it leaves nothing behind.
func TestAccEveryRelease_FailedQueuesOfTeams(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, queue := range []string{"work.a", "work.b", "work.c", "work.d", "work.theirs"} {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	config := func(a, b2, c string) string {
		return pipelineHCL(b, `delays = ["5s"]`, fmt.Sprintf(`work_queues = {
			"work.a" = { %s }
			"work.b" = { %s }
			"work.c" = { %s }
			"work.d" = {}
		}`, a, b2, c))
	}
	const shared, theirs = `failed_queue = { name = "team.failures" }`, `failed_queue = { name = "work.theirs", declare = false }`
	topology := func(kind, name string) tfjsonpath.Path {
		return tfjsonpath.New("topology").AtMapKey(kind).AtMapKey(name)
	}
	acceptQuickly(t, b,
		resource.TestStep{
			Config: config(shared, shared, theirs), ConfigPlanChecks: settled,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, topology("queues", "team.failures"), knownvalue.StringExact(
					"quorum retry-declared-by=orders x-dead-letter-exchange='' x-dead-letter-routing-key=team.failures x-dead-letter-strategy=at-least-once "+
						"x-delivery-limit=1000000 x-overflow=reject-publish")),
				statecheck.ExpectKnownValue(address, topology("policies", "retry/orders/failed-queues"), knownvalue.StringExact(
					`queues ^(team\.failures)$ priority=1000 dead-letter-exchange=orders.dlx dead-letter-strategy=at-least-once overflow=reject-publish`)),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("topology").AtMapKey("bindings"), knownvalue.SetPartial([]knownvalue.Check{
					knownvalue.StringExact("orders.failed.route -> team.failures [failed:work.a] retry-declared=orders"),
					knownvalue.StringExact("orders.failed.route -> work.theirs [failed:work.c]"),
				})),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("failed_queue_permissions").AtMapKey("team.failures"), knownvalue.ObjectExact(map[string]knownvalue.Check{
					"configure": knownvalue.StringExact("^$"), "read": knownvalue.StringExact(`^(team\.failures)$`), "write": knownvalue.StringExact(`^(orders\.return)$`),
				})),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("worker").AtMapKey("work_queues").AtMapKey("work.a").AtMapKey("failed_queue").AtMapKey("name"), knownvalue.StringExact("team.failures")),
			},
		},
		resource.TestStep{
			ResourceName: address, ImportState: true, ImportStateVerify: true, ImportStateId: importID(b.Vhost, "orders"),
			ImportStateVerifyIgnore: []string{"retired_queues", "detached_queues"}, ImportStateVerifyIdentifierAttribute: "name",
		},
		// Drift of any of it is repaired.
		resource.TestStep{
			PreConfig: func() {
				unbound("orders.failed.route", "work.theirs")(t, b)
				deleted("policies", "retry/orders/failed-queues")(t, b)
				deleted("queues", "team.failures")(t, b)
				b.DeclareQueue(t, "team.failures", "quorum", map[string]any{"x-max-length": 5})
			},
			Config: config(shared, shared, theirs), ConfigPlanChecks: settled,
		},
		// From one queue to another, from declared to not, and from none to one.
		resource.TestStep{Config: config(`failed_queue = { name = "team.other" }`, shared, shared), ConfigPlanChecks: settled},
		resource.TestStep{Config: config(``, `failed_queue = { name = "team.failures", declare = false }`, theirs), ConfigPlanChecks: settled},
		resource.TestStep{
			PreConfig: func() {
				if status, _ := b.Request(t, http.MethodGet, b.Path("queues", "team.failures"), nil); status != http.StatusOK {
					t.Errorf("the queue that was released is gone: %d", status)
				}
			},
			Config: config(``, shared, ``), ConfigPlanChecks: settled,
		},
	)
}

// A failed queue that has messages is neither deleted nor forgotten, and the error says how to empty it.
func TestAcc_FailedQueueOfATeamKeepsItsMessages(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	config := func(failedQueue string) string {
		return pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = { `+failedQueue+` } }`)
	}
	refused := regexp.MustCompile(`(?s)would\s+lose\s+messages.*team\.failures: 1 message.*rabbitmq-retry\s+failed.*--queue`)
	const declared = `failed_queue = { name = "team.failures" }`
	acceptQuickly(t, b,
		resource.TestStep{Config: config(declared)},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "", "team.failures", persistent("kept"))
				eventuallyReported(t, b, "team.failures", 1)
			},
			Config: config(`failed_queue = { name = "team.other" }`), ExpectError: refused,
		},
		resource.TestStep{Config: config(``), ExpectError: refused},
		resource.TestStep{Config: config(declared), Destroy: true, ExpectError: refused},
		resource.TestStep{
			PreConfig: func() {
				if m, ok := b.Get(t, "team.failures"); !ok || string(m.Body) != "kept" {
					t.Error("the message is gone")
				}
				eventuallyReported(t, b, "team.failures", 0)
			},
			Config: config(declared), ConfigPlanChecks: settled,
		},
		resource.TestStep{Config: config(``), ConfigPlanChecks: settled},
	)
}

func TestAcc_FailedQueuesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, queue := range []string{"work", "work.b", "work.other"} {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	b.DeclareQueue(t, "work.existing", "quorum", nil)
	b.DeclareQueue(t, "work.cycle", "quorum", amqp.Table{"x-dead-letter-exchange": "orders.dlx"})
	b.DeclareQueue(t, "work.cycle.by.policy", "classic", nil)
	b.Call(t, http.MethodPut, b.Path("policies", "cycle"), map[string]any{
		"pattern": "^work.cycle.by", "apply-to": "queues", "definition": map[string]any{"dead-letter-exchange": "orders.return"},
	}, nil)
	const other = "rabbitmq_retry_pipeline.other"
	both := func(a, b2 string) string {
		return pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = { `+a+` }, "work.b" = { `+b2+` } }`, `depends_on = [`+other+`]`) +
			fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"other\" {\n  name = \"other\"\n  vhost = %q\n  delays = [\"5s\"]\n  work_queues = { \"work.other\" = {} }\n}\n", b.Vhost)
	}
	wrong := func(a, b2, text string) resource.TestStep {
		return resource.TestStep{Config: both(a, b2), ExpectError: regexp.MustCompile("(?s)" + text)}
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: both(``, ``), ConfigPlanChecks: settled},
		wrong(`failed_queue = { name = "orders.failed" }`, ``, `belongs\s+to\s+the\s+pipeline`),
		wrong(`failed_queue = { name = "orders.inbox" }`, ``, `belongs\s+to\s+the\s+pipeline`),
		wrong(`failed_queue = { name = "orders.retry.9s" }`, ``, `belongs\s+to\s+the\s+pipeline`),
		wrong(`failed_queue = { name = "work" }`, ``, `own\s+failed\s+messages`),
		wrong(`failed_queue = { name = "work.b" }`, ``, `is\s+a\s+work\s+queue\s+of\s+this\s+pipeline`),
		wrong(`failed_queue = { name = "other.failed", declare = false }`, ``, `own\s+queues\s+of\s+the\s+pipeline\s+"other"`),
		wrong(`failed_queue = { name = "work.other", declare = false }`, ``, `work\s+queue\s+of\s+the\s+pipeline\s+"other"`),
		wrong(`failed_queue = { name = "x" }`, `failed_queue = { name = "x", declare = false }`, `Write\s+the\s+same\s+for\s+both`),
		wrong(`failed_queue = { name = "" }`, ``, `failed_queue\.name\s+string\s+length\s+must\s+be\s+at\s+least\s+1`),
		wrong(`failed_queue = { declare = false }`, ``, `attribute\s+"name"\s+is\s+required`),
		wrong(`failed_queue = { name = "amq.x" }`, ``, `Reserved\s+queue\s+name`),
		wrong(`failed_queue = { name = "work.existing" }`, ``, `Failed\s+queues\s+exist\s+already`),
		wrong(`failed_queue = { name = "work.cycle", declare = false }`, ``, `would\s+be\s+retried,\s+and\s+come\s+back`),
		wrong(`failed_queue = { name = "work.cycle.by.policy", declare = false }`, ``, `dead-letters\s+to\s+"orders\.return"`),
		wrong(`failed_queue = { name = "nowhere", declare = false }`, ``, `Failed\s+queues\s+do\s+not\s+exist`),
		resource.TestStep{PreConfig: func() { deleted("policies", "cycle")(t, b) }, Config: both(``, ``), ConfigPlanChecks: settled},
	)
}
