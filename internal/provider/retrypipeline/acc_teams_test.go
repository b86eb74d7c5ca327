package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Work queues have their own failed queues, shared or not, declared or not. An import restores all of this, and a change
// leaves no objects behind.
func TestAccEveryRelease_FailedQueuesOfTeams(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work.a", "work.b", "work.c", "work.d", "work.theirs")
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
			Config: config(shared, shared, theirs),
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
		isImported(b),
		// All drift is repaired.
		resource.TestStep{
			PreConfig: func() {
				unbound("orders.failed.route", "work.theirs")(t, b)
				deleted("policies", "retry/orders/failed-queues")(t, b)
				deleted("queues", "team.failures")(t, b)
				b.DeclareQueue(t, "team.failures", "quorum", map[string]any{"x-max-length": 5})
			},
			Config: config(shared, shared, theirs),
		},
		// The failed queue changes, becomes foreign, or is added.
		resource.TestStep{Config: config(`failed_queue = { name = "team.other" }`, shared, shared)},
		resource.TestStep{Config: config(``, `failed_queue = { name = "team.failures", declare = false }`, theirs)},
		resource.TestStep{
			PreConfig: func() { there(t, b, true, "queues", "team.failures") },
			Config:    config(``, shared, ``),
		},
	)
}

// A failed queue with messages is neither deleted nor removed from the state. The error says how to empty it.
func TestAcc_FailedQueueOfATeamKeepsItsMessages(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
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
				acctest.AwaitCount(t, b, "team.failures", 1)
			},
			Config: config(`failed_queue = { name = "team.other" }`), ExpectError: refused,
		},
		resource.TestStep{Config: config(``), ExpectError: refused},
		resource.TestStep{Config: config(declared), Destroy: true, ExpectError: refused},
		resource.TestStep{
			PreConfig: func() {
				takes(t, b, "team.failures", "kept")
				acctest.AwaitCount(t, b, "team.failures", 0)
			},
			Config: config(declared),
		},
		resource.TestStep{Config: config(``)},
	)
}

func TestAcc_FailedQueuesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work", "work.b", "work.other")
	b.DeclareQueue(t, "work.cycle", "quorum", amqp.Table{"x-dead-letter-exchange": "orders.dlx"})
	b.DeclareQueue(t, "work.cycle.by.policy", "classic", nil)
	b.Call(t, http.MethodPut, b.Path("policies", "cycle"), map[string]any{
		"pattern": "^work.cycle.by", "apply-to": "queues", "definition": map[string]any{"dead-letter-exchange": "orders.return"},
	}, nil)
	const other = "rabbitmq_retry_pipeline.other"
	both := func(a, b2 string) string {
		return pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = { `+a+` }, "work.b" = { `+b2+` } }`, `depends_on = [`+other+`]`) +
			pipelineLabelled(b, "other", "other", `delays = ["5s"]`, `work_queues = { "work.other" = {} }`)
	}
	wrong := func(a, b2, text string) resource.TestStep {
		return resource.TestStep{Config: both(a, b2), ExpectError: regexp.MustCompile("(?s)" + text)}
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: both(``, ``)},
		wrong(`failed_queue = { name = "orders.retry.9s" }`, ``, `belongs\s+to\s+the\s+pipeline`),
		wrong(`failed_queue = { name = "work.b" }`, ``, `is\s+a\s+work\s+queue\s+of\s+this\s+pipeline`),
		wrong(`failed_queue = { name = "other.failed", declare = false }`, ``, `own\s+queues\s+of\s+the\s+pipeline\s+"other"`),
		wrong(`failed_queue = { name = "work.other", declare = false }`, ``, `work\s+queue\s+of\s+the\s+pipeline\s+"other"`),
		wrong(`failed_queue = { name = "x" }`, `failed_queue = { name = "x", declare = false }`, `Write\s+the\s+same\s+for\s+both`),
		wrong(`failed_queue = { declare = false }`, ``, `attribute\s+"name"\s+is\s+required`),
		wrong(`failed_queue = { name = "amq.x" }`, ``, `Reserved\s+queue\s+name`),
		wrong(`failed_queue = { name = "work.cycle", declare = false }`, ``, `would\s+be\s+retried,\s+and\s+come\s+back`),
		wrong(`failed_queue = { name = "work.cycle.by.policy", declare = false }`, ``, `dead-letters\s+to\s+"orders\.return"`),
		resource.TestStep{PreConfig: func() { deleted("policies", "cycle")(t, b) }, Config: both(``, ``)},
	)
}

// If another pipeline has failed messages in a failed queue, the queue and its messages stay. This holds if the pipeline that
// declared it removes it from its configuration, and if that pipeline is destroyed by force.
func TestAcc_FailedQueueOfTwoPipelinesStays(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work.a", "work.b")
	one := func(workQueue string) string {
		return pipelineNamed(b, "one", fmt.Sprintf(`work_queues = { "work.a" = { %s } }`, workQueue), "force_destroy = true")
	}
	two := pipelineNamed(b, "two", `work_queues = { "work.b" = { failed_queue = { name = "work.shared", declare = false } } }`)
	parked := func(count int) func() {
		return func() {
			t.Helper()
			b.Publish(t, "two.failed.route", "key", amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{"CC": []any{"failed:work.b"}}})
			awaitReady(t, b, "work.shared", count)
		}
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: one(`failed_queue = { name = "work.shared" }`)},
		resource.TestStep{Config: one(`failed_queue = { name = "work.shared" }`) + two},
		resource.TestStep{PreConfig: parked(1), Config: one("") + two},
		resource.TestStep{PreConfig: parked(2), Config: one(`failed_queue = { name = "work.shared", declare = false }`) + two},
		resource.TestStep{PreConfig: parked(3), Config: two},
		resource.TestStep{PreConfig: parked(4), Config: pipelineNamed(b, "two", `work_queues = {}`)},
	)
}

// The same holds if the pipeline still declares the queue when it is destroyed by force.
func TestAcc_DeclaredFailedQueueOfTwoPipelinesSurvivesAForcedDestroy(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work.a", "work.b")
	one := pipelineNamed(b, "one", `work_queues = { "work.a" = { failed_queue = { name = "work.shared" } } }`, "force_destroy = true")
	two := pipelineNamed(b, "two", `work_queues = { "work.b" = { failed_queue = { name = "work.shared", declare = false } } }`)
	acceptQuickly(t, b,
		resource.TestStep{Config: one},
		resource.TestStep{Config: one + two},
		resource.TestStep{
			PreConfig: func() { b.Publish(t, "", "work.shared", amqp.Publishing{DeliveryMode: amqp.Persistent}) },
			Config:    two,
		},
	)
	if _, ok := b.Get(t, "work.shared"); !ok {
		t.Error("the message is gone")
	}
}
