package retrypipeline_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A failed queue in which another pipeline has its failed messages stays with them, whether the pipeline that has declared it
// only leaves it out, or is destroyed by force.
func TestAcc_FailedQueueOfTwoPipelinesStays(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, queue := range []string{"work.a", "work.b"} {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	one := func(workQueue string) string {
		return pipelineNamed(b, "one", fmt.Sprintf(`work_queues = { "work.a" = { %s } }`, workQueue), "force_destroy = true")
	}
	two := pipelineNamed(b, "two", `work_queues = { "work.b" = { failed_queue = { name = "work.shared", declare = false } } }`)
	parked := func(count int) func() {
		return func() {
			t.Helper()
			b.Publish(t, "two.failed.route", "key", amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{"CC": []any{"failed:work.b"}}})
			brokertest.Eventually(t, func() error {
				q, err := b.Channel(t).QueueDeclarePassive("work.shared", true, false, false, false, nil)
				if err != nil || q.Messages != count {
					return fmt.Errorf("%d messages, %w", q.Messages, err)
				}
				return nil
			})
		}
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: one(`failed_queue = { name = "work.shared" }`)},
		resource.TestStep{Config: one(`failed_queue = { name = "work.shared" }`) + two, ConfigPlanChecks: settled},
		resource.TestStep{PreConfig: parked(1), Config: one("") + two, ConfigPlanChecks: settled},
		resource.TestStep{PreConfig: parked(2), Config: one(`failed_queue = { name = "work.shared", declare = false }`) + two, ConfigPlanChecks: settled},
		resource.TestStep{PreConfig: parked(3), Config: two, ConfigPlanChecks: settled},
		resource.TestStep{PreConfig: parked(4), Config: pipelineNamed(b, "two", `work_queues = {}`), ConfigPlanChecks: settled},
	)
}

// The same if the pipeline that has declared it still does when it is destroyed by force.
func TestAcc_DeclaredFailedQueueOfTwoPipelinesSurvivesAForcedDestroy(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, queue := range []string{"work.a", "work.b"} {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	one := pipelineNamed(b, "one", `work_queues = { "work.a" = { failed_queue = { name = "work.shared" } } }`, "force_destroy = true")
	two := pipelineNamed(b, "two", `work_queues = { "work.b" = { failed_queue = { name = "work.shared", declare = false } } }`)
	acceptQuickly(t, b,
		resource.TestStep{Config: one},
		resource.TestStep{Config: one + two, ConfigPlanChecks: settled},
		resource.TestStep{
			PreConfig: func() { b.Publish(t, "", "work.shared", amqp.Publishing{DeliveryMode: amqp.Persistent}) },
			Config:    two, ConfigPlanChecks: settled,
		},
	)
	if _, ok := b.Get(t, "work.shared"); !ok {
		t.Error("the message is gone")
	}
}

// A binding that somebody has made from the pipeline's own exchange to one of its work queues is drift like any other.
func TestAcc_WorkQueueBoundToFailedMessagesIsReleased(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, queue := range []string{"work.a", "work.b"} {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	config := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work.a" = { failed_queue = { name = "failures" } }, "work.b" = {} }`)
	acceptQuickly(t, b,
		resource.TestStep{Config: config, ConfigPlanChecks: settled},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodPost, b.Path("bindings", "e", "orders.failed.route", "q", "work.b"), map[string]any{"routing_key": "failed:work.a"}, nil)
			},
			Config: config, ConfigPlanChecks: settled,
		},
	)
}
