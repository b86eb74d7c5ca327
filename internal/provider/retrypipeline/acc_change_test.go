package retrypipeline_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// If a delay leaves the schedule while its queue has a message, the queue stays until the message has come back. A later
// apply removes it. The message is due at once, but waits behind a second message until the test removes that. So even on a
// slow machine it is there as long as the test needs it.
func TestAcc_ChangingDelaysRetiresQueuesAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
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
				// The broker's counts lag, and the plan after this apply must see the messages.
				acctest.AwaitCount(t, b, "orders.retry.2h", 2)
			},
			Config:            after,
			ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{inPlace}},
			ConfigStateChecks: []statecheck.StateCheck{retired(false)},
		},
		resource.TestStep{
			PreConfig: func() {
				takes(t, b, "orders.retry.2h", "first")
				expectIn(t, b, "work", "waiting")
				acctest.AwaitCount(t, b, "orders.retry.2h", 0)
			},
			Config: after,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{inPlace, onlyDiffers{
					"queues orders.retry.2h", "bindings orders.retry -> orders.retry.2h [delay:2h]",
				}},
			},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_queues"), knownvalue.MapSizeExact(0)),
			},
		},
		resource.TestStep{
			PreConfig: func() { there(t, b, false, "queues", "orders.retry.2h") },
			Config:    after,
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
		},
		resource.TestStep{
			PreConfig: func() { takes(t, b, "orders.retry.2h", "waiting") },
			Config:    pipelineHCL(b, both),
		},
	)
}

func TestAcc_WorkQueuesAttemptsAndReasonsChangeInPlace(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work.a")
	b.DeclareQueue(t, "work.b", "classic", nil)
	step := func(lines ...string) resource.TestStep {
		return resource.TestStep{Config: pipelineHCL(b, lines...), ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)},
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

// A message that was published just before a plan is not in the statistics yet, and still keeps its queue.
func TestAccEveryRelease_NothingIsDrainedByOneReading(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		for _, phase := range []time.Duration{0, 2 * time.Second, 4 * time.Second} { // of the statistics, gathered every 5 seconds
			t.Run(fmt.Sprintf("%s, %s", queueType, phase), func(t *testing.T) {
				t.Parallel()
				keepsQueueOfLateMessage(t, queueType, phase)
			})
		}
	}
}

func keepsQueueOfLateMessage(t *testing.T, queueType string, phase time.Duration) {
	t.Helper()
	b := brokertest.New(t)
	times := acctest.Quick()
	times.Lag = acctest.Times().Lag
	core := &acctest.Core{Type: resourceType, Times: times, Endpoint: b.Endpoint, Config: map[string]any{
		"name": "orders", "vhost": b.Vhost, "queue_type": queueType,
	}}
	for _, delays := range [][]string{{"1h", "2h"}, {"1h"}} {
		core.Config["delays"] = delays
		core.MustApply(t)
	}
	const retired = "orders.retry.2h"
	acctest.AwaitCount(t, b, retired, 0)
	time.Sleep(phase)
	b.Publish(t, "", retired, persistent("late"))
	plan, err := core.Plan(t.Context())
	require.NoError(t, err)
	if late := queueType == topology.Quorum && !counts(t, b, retired); !late && !plan.Empty() {
		t.Error("the plan removes a queue with a message")
	}
	if _, kept := b.Get(t, retired); !kept {
		t.Fatal("the message is gone")
	}
	brokertest.Eventually(t, func() error {
		plan, err := core.Plan(t.Context())
		if err == nil && plan.Empty() {
			err = errors.New("the empty queue is not removed")
		}
		return err
	})
	require.NoError(t, core.Destroy(t.Context()))
}

// counts reports whether the broker has counted a message in a queue. On a busy broker, a quorum queue can count too late for
// any plan.
func counts(t *testing.T, b *brokertest.Broker, queue string) bool {
	t.Helper()
	var queues []struct {
		Name     string `json:"name"`
		Messages int    `json:"messages"`
	}
	b.Call(t, http.MethodGet, b.Path("queues")+"?disable_stats=true&enable_queue_totals=true", nil, &queues)
	for _, q := range queues {
		if q.Name == queue {
			return q.Messages > 0
		}
	}
	return false
}

// However many pipelines of a vhost have retired queues, a plan waits once.
func TestAcc_PlanOfManyRetiredQueuesWaitsOnce(t *testing.T) {
	t.Parallel()
	tf := newReleasedCLI(t)
	const pipelines = 25
	var first, second, each atomic.Int32
	endpoint := tf.Before(t, func(r *http.Request) {
		switch {
		case strings.Contains(r.URL.RawQuery, "messages_dlx"):
			first.Add(1)
		case strings.Contains(r.URL.RawQuery, "enable_queue_totals"):
			second.Add(1)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".retry.2s"):
			each.Add(1)
		}
	})
	config := func(delays string) string {
		return at(endpoint) + pipelineLabelled(tf.Broker, "many", "p${count.index}", fmt.Sprintf("count = %d", pipelines), "delays = ["+delays+"]")
	}
	for _, delays := range []string{`"1s", "2s"`, `"1s"`} {
		tf.applied(t, config(delays))
	}
	for i := range pipelines {
		acctest.AwaitCount(t, tf.Broker, fmt.Sprintf("p%d.retry.2s", i), 0)
	}
	// A busy broker can take a moment to report on each queue.
	brokertest.Eventually(t, func() error {
		first.Store(0)
		second.Store(0)
		each.Store(0)
		if printed := tf.plan(t); strings.Count(printed, "drained = true") != pipelines {
			return fmt.Errorf("not all queues are removed:\n%s", printed)
		}
		return nil
	})
	if first.Load() != 1 || second.Load() != 1 || each.Load() != pipelines {
		t.Errorf("%d first and %d second readings, %d of single queues", first.Load(), second.Load(), each.Load())
	}
}

// RabbitMQ 4.3 accepts patterns up to 1,024 bytes, so many work queues share several policies.
func TestAcc_ManyWorkQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for i := range 80 {
		b.DeclareQueue(t, fmt.Sprintf("work-queue.of.the.shop.%d", i), "classic", nil)
	}
	config := func(queues int) string {
		return pipelineHCL(b, `delays = ["5s"]`, `queue_type = "classic"`,
			fmt.Sprintf(`work_queues = { for i in range(%d) : "work-queue.of.the.shop.${i}" => { type = "classic" } }`, queues))
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: config(20)},
		resource.TestStep{Config: config(80), Check: attached(t, b, 80)},
		isImported(b),
		resource.TestStep{Config: config(20), Check: attached(t, b, 20)},
	)
}

// attached waits until the pipeline's policies apply to this many queues.
func attached(t *testing.T, b *brokertest.Broker, want int) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		brokertest.Eventually(t, func() error {
			var queues []struct {
				Name, Policy string
			}
			b.Call(t, http.MethodGet, b.Path("queues"), nil, &queues)
			n := 0
			for _, queue := range queues {
				if strings.HasPrefix(queue.Policy, "retry/orders/queues") && !strings.HasPrefix(queue.Name, "orders.") {
					n++
				}
			}
			if n != want {
				return fmt.Errorf("%d queues are attached, want %d", n, want)
			}
			return nil
		})
		return nil
	}
}
