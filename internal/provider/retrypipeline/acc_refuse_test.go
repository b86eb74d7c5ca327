package retrypipeline_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

func TestAccEveryRelease_DestroyRefusesWhileTheFailedQueueHoldsMessages(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			b.DeclareQueue(t, "work", "quorum", nil)
			config := pipelineHCL(b, `delays = ["5s"]`, fmt.Sprintf("queue_type = %q", queueType), `work_queues = { "work" = {} }`)
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

// What a full queue has refused waits for that one alone, and would be lost to it.
func TestAccEveryRelease_DestroyRefusesWhileAQueueRefusesMessages(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "audit", "classic", map[string]any{"x-max-length": 0, "x-overflow": "reject-publish"})
	config := pipelineHCL(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				bound("orders.failed", "audit", "", nil)(t, b)
				b.Publish(t, "", "orders.retry.0.refused", persistent("refused"))
				brokertest.Eventually(t, func() error {
					if m, ok := b.Get(t, "orders.failed"); !ok || string(m.Body) != "refused" {
						return errors.New("the failed queue has nothing")
					}
					return nil
				})
			},
			Config:      config,
			Destroy:     true,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.retry\.0\.refused: 1 message.*make\s+room\s+in\s+the\s+queue\s+behind`),
		},
		resource.TestStep{
			PreConfig: func() {
				for _, queue := range []string{"audit", "orders.retry.0.refused"} {
					b.Call(t, http.MethodDelete, b.Path("queues", queue), nil, nil)
				}
			},
			Config: config,
		},
	)
}

// A quorum work queue holds dead letters that their target does not take; its policy's deletion
// would delete them.
func TestAccEveryRelease_DetachAndDestroyRefuseWhileAWorkQueueHoldsDeadLetters(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	attached := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = {} }`)
	accept(t, b,
		resource.TestStep{Config: attached},
		resource.TestStep{
			PreConfig: func() {
				unbound("orders.dlx", "orders.inbox")(t, b)
				unbound("orders.failed", "orders.failed")(t, b)
				rejectOne(t, b, "work")
			},
			Config:      pipelineHCL(b, `delays = ["5s"]`),
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*work: 1 dead letter`),
		},
		resource.TestStep{
			Config:      attached,
			Destroy:     true,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*work: 1 dead letter`),
		},
		// The repair brings the bindings back and makes the broker try again at once, not minutes later.
		resource.TestStep{Config: attached},
		resource.TestStep{PreConfig: func() { emptyInbox(t, b, 1) }, Config: attached},
	)
}

func TestAcc_RemovingADeclaredQueueThatHoldsMessagesIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	with := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "paid" = { declare = true } }`)
	without := pipelineHCL(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: with},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "", "paid", persistent("order")) },
			Config:      without,
			ExpectError: regexp.MustCompile(`(?s)not empty.*paid: 1 message`),
		},
		// The refused change has touched nothing: the queue is attached still.
		resource.TestStep{Config: with, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
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
				if slices.Contains(acctest.Names(t, b, "queues"), "paid") {
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
	acceptQuickly(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work.paid" = { declare = true } }`)},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work.paid" = {} }`)},
		resource.TestStep{
			PreConfig: func() {
				if !slices.Contains(acctest.Names(t, b, "queues"), "work.paid") {
					t.Error("the queue was deleted")
				}
			},
			Config: pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work.paid" = {} }`),
		},
	)
}

// A queue that was re-made by hand cannot be repaired in place; with messages in it, it is kept.
func TestAcc_RepairOfAQueueThatHoldsMessagesIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`)
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
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{onlyDiffers{
				"queues orders.failed", "bindings orders.failed -> orders.failed",
				`bindings orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}'`,
			}}},
		},
	)
}

// Immutable arguments of a queue that an application publishes to and consumes cannot change.
func TestAcc_ChangingArgumentsOfAQueueInUseIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	before := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "paid" = { declare = true } }`)
	after := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "paid" = { declare = true, arguments_json = jsonencode({ x-single-active-consumer = true }) } }`)
	var consuming *amqp.Connection
	unchanged := resource.TestStep{Config: before, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}}
	accept(t, b,
		resource.TestStep{Config: before},
		resource.TestStep{
			PreConfig:   func() { bound("amq.topic", "paid", "#", nil)(t, b) },
			Config:      after,
			ExpectError: regexp.MustCompile(`(?s)Bindings of others.*amq\.topic -> paid`),
		},
		unchanged,
		resource.TestStep{
			PreConfig: func() {
				unbound("amq.topic", "paid")(t, b)
				consuming = b.Dial(t)
				ch, err := consuming.Channel()
				require.NoError(t, err)
				if _, err := ch.Consume("paid", "consumer", false, false, false, false, nil); err != nil {
					t.Fatal(err)
				}
				awaitConsumers(t, b, "paid", 1)
			},
			Config:      after,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*paid: 1 consumer`),
		},
		unchanged,
		resource.TestStep{
			PreConfig: func() {
				_ = consuming.Close()
				awaitConsumers(t, b, "paid", 0)
			},
			Config:           after,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
	)
}

func awaitConsumers(t *testing.T, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var q struct {
			Consumers *int `json:"consumers"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &q)
		if q.Consumers == nil || *q.Consumers != want {
			return fmt.Errorf("%s: consumers %v, want %d", queue, q.Consumers, want)
		}
		return nil
	})
}

// A repair that is refused for a queue leaves the exchanges and everybody's bindings alone.
func TestAcc_RefusedRepairKeepsForeignBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work.audit", "quorum", nil)
	config := pipelineHCL(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				deleted("exchanges", "orders.dlx")(t, b)
				b.Call(t, http.MethodPut, b.Path("exchanges", "orders.dlx"), map[string]any{"type": "fanout", "durable": true}, nil)
				bound("orders.dlx", "work.audit", "", nil)(t, b)
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
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "orders.dlx", "k", persistent("seen"))
				if err := arrived(t, b, "work.audit", "seen"); err != nil {
					t.Error("the foreign binding is gone")
				}
				if err := arrived(t, b, "orders.inbox", "seen"); err != nil {
					t.Error(err)
				}
			},
			Config: config,
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
	require.NoError(t, d.Reject(false))
}
