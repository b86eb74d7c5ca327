package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

func TestAcc_DestroyRefusesWhileTheFailedQueueHoldsMessages(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			declare(t, b, "work", "quorum")
			config := pipeline(b, `delays = ["5s"]`, fmt.Sprintf("queue_type = %q", queueType), `work_queues = { "work" = {} }`)
			accept(t, b,
				resource.TestStep{Config: config},
				resource.TestStep{
					PreConfig:   func() { b.Publish(t, "orders.failed", "k", persistent("parked")) },
					Config:      config,
					Destroy:     true,
					ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.failed: 1 message`),
				},
				// Everything is in its place again.
				resource.TestStep{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
				resource.TestStep{
					PreConfig: func() {
						if m, ok := b.Get(t, "orders.failed"); !ok || string(m.Body) != "parked" {
							t.Error("the parked message is gone")
						}
					},
					Config: config,
				},
			)
		})
	}
}

// A quorum work queue holds dead letters that their target does not take; its policy's deletion
// would delete them.
func TestAcc_DetachAndDestroyRefuseWhileAWorkQueueHoldsDeadLetters(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	declare(t, b, "work", "quorum")
	attached := pipeline(b, `delays = ["5s"]`, `work_queues = { "work" = {} }`)
	accept(t, b,
		resource.TestStep{Config: attached},
		resource.TestStep{
			PreConfig: func() {
				unbound("orders.dlx", "orders.inbox")(t, b)
				unbound("orders.failed", "orders.failed")(t, b)
				rejectOne(t, b, "work")
			},
			Config:      pipeline(b, `delays = ["5s"]`),
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*work: 1 dead letter`),
		},
		resource.TestStep{
			Config:      attached,
			Destroy:     true,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*work: 1 dead letter`),
		},
		// The repair brings the binding back; a policy written anew makes the broker try again.
		resource.TestStep{Config: attached},
		resource.TestStep{
			PreConfig: func() {
				deleted := fmt.Sprintf("%s?if-unused=false", b.Path("queues", "work"))
				call(t, b, http.MethodDelete, deleted, nil, nil)
				declare(t, b, "work", "quorum")
			},
			Config: attached,
		},
	)
}

func TestAcc_RemovingADeclaredQueueThatHoldsMessagesIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	with := pipeline(b, `delays = ["5s"]`, `work_queues = { "paid" = { declare = true } }`)
	without := pipeline(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: with},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "", "paid", persistent("order")) },
			Config:      without,
			ExpectError: regexp.MustCompile(`(?s)not empty.*paid: 1 message`),
		},
		resource.TestStep{Config: with, ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
		resource.TestStep{
			PreConfig: func() {
				if m, ok := b.Get(t, "paid"); !ok || string(m.Body) != "order" {
					t.Error("the message is gone")
				}
			},
			Config: without,
		},
		resource.TestStep{
			PreConfig: func() {
				if slices.Contains(names(t, b, "queues"), "paid") {
					t.Error("the empty queue was not deleted")
				}
			},
			Config: without,
		},
	)
}

func TestAcc_RemovingDeclareKeepsTheQueue(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	accept(t, b,
		resource.TestStep{Config: pipeline(b, `delays = ["5s"]`, `work_queues = { "work.paid" = { declare = true } }`)},
		resource.TestStep{Config: pipeline(b, `delays = ["5s"]`, `work_queues = { "work.paid" = {} }`)},
		resource.TestStep{
			PreConfig: func() {
				if !slices.Contains(names(t, b, "queues"), "work.paid") {
					t.Error("the queue was deleted")
				}
			},
			Config: pipeline(b, `delays = ["5s"]`, `work_queues = { "work.paid" = {} }`),
		},
	)
}

// A queue that was re-made by hand cannot be repaired in place; with messages in it, it is kept.
func TestAcc_RepairOfAQueueThatHoldsMessagesIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipeline(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				remade("orders.failed", "quorum", map[string]any{"x-delivery-limit": 7})(t, b)
				bound("orders.failed", "orders.failed", "", nil)(t, b)
				b.Publish(t, "orders.failed", "k", persistent("parked"))
			},
			Config:      config,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.failed: 1 message`),
		},
		resource.TestStep{
			PreConfig: func() {
				if m, ok := b.Get(t, "orders.failed"); !ok || string(m.Body) != "parked" {
					t.Error("the parked message is gone")
				}
			},
			Config:           config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{onlyDiffers{"queues orders.failed"}}},
		},
	)
}

func persistent(body string) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
}

// rejectOne publishes a message to a queue and rejects it.
func rejectOne(t *testing.T, b *brokertest.Broker, queue string) {
	t.Helper()
	b.Publish(t, "", queue, persistent("rejected"))
	ch := b.Channel(t)
	d, ok, err := ch.Get(queue, false)
	if err != nil || !ok {
		t.Fatalf("get from %s: %v, %v", queue, ok, err)
	}
	if err := d.Reject(false); err != nil {
		t.Fatal(err)
	}
}
