package retrypipeline_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// A delay leaves the schedule while its queue holds a message: the queue stays until the message
// has come back, and goes with a later apply. The message is due at once but waits behind another one
// until the test takes that away: however slow the machine is, it is there when it shall be.
func TestAcc_ChangingDelaysRetiresQueuesAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	work := `work_queues = { work = {} }`
	before := pipelineHCL(b, `delays = ["5s", "2h"]`, work)
	after := pipelineHCL(b, `delays = ["5s", "1m"]`, work)
	inPlace := plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)
	retired := func(drained bool) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_queues"), knownvalue.MapExact(map[string]knownvalue.Check{
			"orders.retry.2h": knownvalue.ObjectExact(map[string]knownvalue.Check{
				"delay": knownvalue.StringExact("2h"), "drained": knownvalue.Bool(drained),
			}),
		}))
	}
	accept(t, b,
		resource.TestStep{Config: before},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "orders.retry", "order.created", amqp.Publishing{
					DeliveryMode: amqp.Persistent, Body: []byte("first"), Headers: amqp.Table{"CC": []any{"delay:2h"}},
				})
				b.Publish(t, "orders.retry", "order.created", amqp.Publishing{
					DeliveryMode: amqp.Persistent, Body: []byte("waiting"), Expiration: "1",
					Headers: amqp.Table{"CC": []any{"delay:2h", "return:work"}},
				})
				// The broker's counts lag: the plan after this apply must see the messages.
				acctest.AwaitCount(t, b, "orders.retry.2h", 2)
			},
			Config:            after,
			ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{inPlace}},
			ConfigStateChecks: []statecheck.StateCheck{retired(false)},
		},
		resource.TestStep{
			PreConfig: func() {
				if m, ok := b.Get(t, "orders.retry.2h"); !ok || string(m.Body) != "first" {
					t.Fatalf("got %q, %t, want the first message", m.Body, ok)
				}
				brokertest.Eventually(t, func() error { return arrived(t, b, "work", "waiting") })
				acctest.AwaitCount(t, b, "orders.retry.2h", 0)
			},
			Config: after,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{inPlace, onlyDiffers{
					"queues orders.retry.2h", "bindings orders.retry -> orders.retry.2h [delay:2h]",
				}},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_queues"), knownvalue.MapSizeExact(0)),
			},
		},
		resource.TestStep{
			PreConfig: func() {
				if slices.Contains(acctest.Names(t, b, "queues"), "orders.retry.2h") {
					t.Error("the drained queue is still there")
				}
			},
			Config: after,
		},
	)
}

func TestAcc_DelayThatComesBackRevivesItsQueue(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	stays := `delays = ["1h"]`
	both := `delays = ["1h", "2h"]`
	publish := func() {
		b.Publish(t, "orders.retry", "k", amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: []byte("waiting"), Headers: amqp.Table{"CC": []any{"delay:2h"}},
		})
		acctest.AwaitCount(t, b, "orders.retry.2h", 1)
	}
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, both)},
		resource.TestStep{PreConfig: publish, Config: pipelineHCL(b, stays)},
		resource.TestStep{
			Config: pipelineHCL(b, both),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		},
		resource.TestStep{
			PreConfig: func() {
				if m, ok := b.Get(t, "orders.retry.2h"); !ok || string(m.Body) != "waiting" {
					t.Error("the waiting message is gone")
				}
			},
			Config: pipelineHCL(b, both),
		},
	)
}

func TestAcc_WorkQueuesAttemptsAndReasonsChangeInPlace(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work.a", "quorum", nil)
	b.DeclareQueue(t, "work.b", "classic", nil)
	step := func(lines ...string) resource.TestStep {
		return resource.TestStep{Config: pipelineHCL(b, lines...), ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)},
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		}}
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`)},
		step(`delays = ["5s"]`, `work_queues = { "work.a" = {} }`),
		step(`delays = ["5s"]`, `work_queues = { "work.a" = {}, "work.b" = { type = "classic" } }`, `max_attempts = 7`),
		step(`delays = ["5s"]`, `work_queues = { "work.b" = { type = "classic" } }`, `max_attempts = 7`, `retry_on = ["rejected", "maxlen"]`),
		step(`delays = ["5000ms"]`, `work_queues = { "declared" = { declare = true } }`),
	)
}

func arrived(t *testing.T, b *brokertest.Broker, queue, body string) error {
	t.Helper()
	m, ok := b.Get(t, queue)
	if !ok || string(m.Body) != body {
		return fmt.Errorf("%s has not arrived in %s", body, queue)
	}
	return nil
}
