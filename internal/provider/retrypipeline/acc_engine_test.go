package retrypipeline_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// A pipeline without a worker is made, shown and imported as any other. Where the broker is too old, the plan says so.
func TestAccEveryRelease_EngineWithoutWorker(t *testing.T) {
	t.Parallel()
	for engine, c := range map[string]struct {
		since, tooOld, deadLetterExchange string
		lines                             []string
	}{
		"native": {"4.3.1", `4\.3\.1 on`, "orders.failed", []string{
			`delays = ["1s", "2s", "3s"]`, `max_attempts = 5`,
			`work_queues = { work = { failed_queue = { name = "work.failures" } }, noted = { declare = true } }`,
		}},
		"consumer": {"4.0", `Before 4\.0`, "orders.retry", []string{
			`delays = ["1s"]`, `max_attempts = 3`,
			`work_queues = { work = { failed_queue = { name = "work.failures" } }, noted = { declare = true, attach = "arguments" } }`,
		}},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			b := vhostWith(t, "work")
			config := pipelineHCL(b, append(c.lines, fmt.Sprintf("engine = %q", engine))...)
			if !b.VersionAtLeast(c.since) {
				acceptQuickly(t, b, resource.TestStep{Config: config, PlanOnly: true, ExpectError: says(`RabbitMQ is too old for this engine.*` + c.tooOld)})
				return
			}
			value := func(attribute string, check knownvalue.Check) statecheck.StateCheck {
				return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), check)
			}
			acceptQuickly(t, b,
				resource.TestStep{Config: config, ConfigStateChecks: []statecheck.StateCheck{
					value("engine", knownvalue.StringExact(engine)),
					value("worker", knownvalue.Null()), value("worker_permissions", knownvalue.Null()), value("inbox_queue", knownvalue.Null()),
					value("dead_letter_exchange", knownvalue.StringExact(c.deadLetterExchange)),
					value("failed_queue_name", knownvalue.StringExact("orders.failed")),
				}},
				resource.TestStep{Config: config, Check: func(*terraform.State) error {
					read, err := (&acctest.Process{}).Data(t.Context(), resourceType, map[string]any{"name": "orders", "vhost": b.Vhost})
					if err == nil && (read["engine"] != engine || read["worker"] != nil) {
						err = fmt.Errorf("engine %v, worker %v", read["engine"], read["worker"])
					}
					return err
				}},
				isImported(b),
			)
		})
	}
}

// A pipeline with work queues does not change its engine; one without is replaced.
func TestAccEveryRelease_EngineChanges(t *testing.T) {
	t.Parallel()
	b := workingSince(t, "4.0", "quorum")
	lines := func(engine, queues string) string {
		return pipelineHCL(b, fmt.Sprintf("engine = %q", engine), `delays = ["1s"]`, fmt.Sprintf("work_queues = { %s }", queues))
	}
	replaced := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionDestroyBeforeCreate)}}
	acceptQuickly(t, b,
		resource.TestStep{Config: lines("worker", "work = {}")},
		resource.TestStep{Config: lines("consumer", "work = {}"), ExpectError: says(`A pipeline with work queues would be replaced.*take_over_from`)},
		resource.TestStep{Config: lines("worker", "")},
		resource.TestStep{Config: lines("consumer", ""), ConfigPlanChecks: replaced},
		resource.TestStep{Config: lines("consumer", "work = {}")},
		resource.TestStep{Config: lines("worker", "work = {}"), ExpectError: says(`A pipeline with work queues would be replaced.*take_over_from`)},
	)
}

// counted is after how many deliveries brokers from 4.0 on dead-letter a message of a quorum queue, by default.
const counted = 21

// beingRetried applies a pipeline, and does what consumers do while the sidecar runs, if the engine has one.
func beingRetried(t *testing.T, b *brokertest.Broker, engine string, do func(), lines ...string) {
	t.Helper()
	if engine != "worker" {
		behaving(t, b, do, append(lines, fmt.Sprintf("engine = %q", engine))...)
		return
	}
	config := pipelineHCL(b, append(lines, "force_destroy = true")...) +
		`output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] }) }`
	acctest.RunTerraform(t, acctest.Quick(), resource.TestStep{Config: config, Check: func(state *terraform.State) error {
		defer serve(t, b, workerConfigOf(t, state.RootModule().Outputs["worker"].Value), nil)()
		do()
		return nil
	}})
}

// The sidecar waits as configured, and the last delay goes on for as long as there are attempts.
func TestAccEveryRelease_WorkerDelays(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			b.DeclareQueue(t, "work", queueType, nil)
			beingRetried(t, b, "worker", func() {
				b.Publish(t, "", "work", persistent("rejected"))
				waits := failing(t, b, 5, func(d amqp.Delivery) error { return d.Nack(false, false) })
				waited(t, waits, ms(400), ms(1500), ms(200), ms(200))
				if m := parked(t, b, "rejected"); m.Headers["dead-letter-reason"] != "exhausted" || m.Headers["retry-count"] != int64(5) {
					t.Errorf("parked with %v", m.Headers)
				}
			}, `delays = ["400ms", "1500ms", "200ms"]`, `max_attempts = 5`, fmt.Sprintf("queue_type = %q", queueType),
				fmt.Sprintf("work_queues = { work = { type = %q } }", queueType))
		})
	}
}

// What is returned to the queue is not retried: it comes back at once. From 4.0 on a quorum queue counts that, and the message is
// parked; from 4.3 on it counts basic.reject alone. A classic queue counts nothing.
func TestAccEveryRelease_RequeueIsNoRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ engine, since, queueType string }{
		"worker": {"worker", "3.10", "quorum"}, "worker, classic": {"worker", "3.10", "classic"}, "consumer": {"consumer", "4.0", "quorum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := workingSince(t, c.since, c.queueType)
			beingRetried(t, b, c.engine, func() {
				counts := c.queueType == "quorum" && b.VersionAtLeast("4.0")
				comesBack(t, b, "rejected", counts, func(d amqp.Delivery) error { return d.Reject(true) })
				comesBack(t, b, "nacked", counts && !b.VersionAtLeast("4.3"), func(d amqp.Delivery) error { return d.Nack(false, true) })
			}, `delays = ["1h"]`, fmt.Sprintf("work_queues = { work = { type = %q } }", c.queueType))
		})
	}
}

// comesBack has a message returned to the queue until that has counted enough, or twice as often if it does not count.
func comesBack(t *testing.T, b *brokertest.Broker, body string, counts bool, fail func(amqp.Delivery) error) {
	t.Helper()
	b.Publish(t, "", "work", persistent(body))
	if counts {
		failing(t, b, counted, fail)
		parked(t, b, body)
	} else {
		failingBut(t, b, 2*counted, fail)
	}
}

// A consumer that does not count gets the message again, however often: the queue's delivery limit does not end it.
func TestAccEveryRelease_ConsumersDoNotCount(t *testing.T) {
	t.Parallel()
	for call, fail := range map[string]func(amqp.Delivery) error{
		"nack":   func(d amqp.Delivery) error { return d.Nack(false, false) },
		"reject": func(d amqp.Delivery) error { return d.Reject(false) },
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			b := workingSince(t, "4.0", "quorum")
			beingRetried(t, b, "consumer", func() {
				const times = counted + 5
				b.Publish(t, "", "work", persistent("never parked"))
				waited(t, failingBut(t, b, times, fail), slices.Repeat([]time.Duration{ms(100)}, times-1)...)
			}, `delays = ["100ms"]`, `max_attempts = 2`, `work_queues = { work = {} }`)
		})
	}
}
