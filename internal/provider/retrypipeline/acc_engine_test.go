package retrypipeline_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// engineCase is a pipeline without a worker.
type engineCase struct {
	engine, since, tooOld string
	lines                 []string
	deadLetterExchange    string
	// These are all of the pipeline's objects.
	exchanges, queues, policies []string
	bindings                    [][2]string
}

func engineCases() []engineCase {
	bindings := [][2]string{
		{"orders.return", "noted"}, {"orders.return", "work"}, {"orders.failed", "orders.failed"}, {"orders.failed.route", "work.failures"},
	}
	return []engineCase{
		{
			engine: "native", since: "4.3.1", tooOld: `4\.3\.1 on`, deadLetterExchange: "orders.failed",
			lines: []string{
				`engine = "native"`, `delays = ["1s", "2s", "3s"]`, `max_attempts = 5`,
				`work_queues = { work = { failed_queue = { name = "work.failures" } }, noted = { declare = true } }`,
			},
			exchanges: []string{"orders.failed", "orders.failed.route", "orders.return"},
			queues:    []string{"orders.failed", "work.failures", "noted"},
			policies:  []string{"retry/orders/queues", "retry/orders/quorum-queues", "retry/orders/queue/work", "retry/orders/failed-queues"},
			bindings:  bindings,
		},
		{
			engine: "consumer", since: "4.0", tooOld: `Before\s+3\.13`, deadLetterExchange: "orders.retry",
			lines: []string{
				`engine = "consumer"`, `delays = ["1s"]`, `max_attempts = 3`,
				`work_queues = { work = { failed_queue = { name = "work.failures" } }, noted = { declare = true, attach = "arguments" } }`,
			},
			exchanges: []string{"orders.failed", "orders.failed.route", "orders.return", "orders.retry"},
			queues:    []string{"orders.failed", "work.failures", "orders.retry.1s", "noted"},
			policies:  []string{"retry/orders/queues", "retry/orders/queue/work", "retry/orders/failed-queues"},
			bindings:  append([][2]string{{"orders.retry", "orders.retry.1s"}}, bindings...),
		},
	}
}

// A pipeline without a worker is created, shown, repaired object by object, imported and destroyed like any other. If the
// broker is too old, the plan says so.
func TestAccEveryRelease_EngineWithoutWorker(t *testing.T) {
	t.Parallel()
	for _, c := range engineCases() {
		t.Run(c.engine, func(t *testing.T) {
			t.Parallel()
			b := brokertest.WithQueues(t, "work")
			config := pipelineHCL(b, c.lines...)
			if !b.VersionAtLeast(c.since) {
				acceptQuickly(t, b, resource.TestStep{Config: config, PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)RabbitMQ is too old for this engine.*` + c.tooOld)})
				return
			}
			value := func(attribute string, check knownvalue.Check) statecheck.StateCheck {
				return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), check)
			}
			steps := []resource.TestStep{
				{Config: config, ConfigStateChecks: []statecheck.StateCheck{
					value("engine", knownvalue.StringExact(c.engine)),
					value("worker", knownvalue.Null()), value("worker_permissions", knownvalue.Null()), value("inbox_queue", knownvalue.Null()),
					value("dead_letter_exchange", knownvalue.StringExact(c.deadLetterExchange)),
					value("failed_queue_name", knownvalue.StringExact("orders.failed")),
				}},
				{Config: config, PlanOnly: true},
				{Config: config, Check: func(*terraform.State) error {
					read, err := (&acctest.Process{}).Data(t.Context(), resourceType, map[string]any{"name": "orders", "vhost": b.Vhost})
					if err == nil && (read["engine"] != c.engine || read["worker"] != nil) {
						err = fmt.Errorf("engine %v, worker %v", read["engine"], read["worker"])
					}
					return err
				}},
				{
					Config: config, ResourceName: address, ImportState: true, ImportStateId: importID(b.Vhost, "orders"),
					ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
				},
			}
			for what, spoil := range c.drifts() {
				steps = append(steps,
					resource.TestStep{PreConfig: func() { t.Log(what); spoil(t, b) }, Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
					resource.TestStep{Config: config},
				)
			}
			acceptQuickly(t, b, append(steps, resource.TestStep{Config: config, PlanOnly: true})...)
		})
	}
}

// drifts remove each object.
func (c engineCase) drifts() map[string]func(*testing.T, *brokertest.Broker) {
	all := map[string]func(*testing.T, *brokertest.Broker){}
	for kind, objects := range map[string][]string{"exchanges": c.exchanges, "queues": c.queues, "policies": c.policies} {
		for _, name := range objects {
			all[kind+" "+name] = deleted(kind, name)
		}
	}
	for _, ends := range c.bindings {
		all["binding "+strings.Join(ends[:], " to ")] = unbound(ends[0], ends[1])
	}
	return all
}

// A pipeline with work queues cannot change its engine. A pipeline without work queues is replaced.
func TestAccEveryRelease_EngineChanges(t *testing.T) {
	t.Parallel()
	b := workingWith(t, "consumer", "quorum")
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

// counted is the number of deliveries after which brokers since 4.0 dead-letter a message of a quorum queue by default.
const counted = 21

// beingRetried applies a pipeline, and acts as consumers while the sidecar runs, if the engine has one.
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

// The sidecar waits as configured, and uses the last delay for all further attempts.
func TestAccEveryRelease_WorkerDelays(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
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

// A message that is returned to the queue is not retried but comes back at once. Since 4.0, a quorum queue counts returns and
// finally parks the message. Since 4.3, it counts only basic.reject. A classic queue does not count.
func TestAccEveryRelease_RequeueIsNoRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ engine, queueType string }{
		"worker": {"worker", "quorum"}, "worker, classic": {"worker", "classic"}, "consumer": {"consumer", "quorum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := workingWith(t, c.engine, c.queueType)
			beingRetried(t, b, c.engine, func() {
				counts := c.queueType == "quorum" && b.VersionAtLeast("4.0")
				comesBack(t, b, "rejected", counts, func(d amqp.Delivery) error { return d.Reject(true) })
				comesBack(t, b, "nacked", counts && !b.VersionAtLeast("4.3"), func(d amqp.Delivery) error { return d.Nack(false, true) })
			}, `delays = ["1h"]`, fmt.Sprintf("work_queues = { work = { type = %q } }", c.queueType))
		})
	}
}

// comesBack returns a message to the queue until the queue has counted enough, or twice as often if it does not count.
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

// If a consumer does not count, it gets the message again indefinitely, since the queue's delivery limit does not end that.
func TestAccEveryRelease_ConsumersDoNotCount(t *testing.T) {
	t.Parallel()
	for call, fail := range map[string]func(amqp.Delivery) error{
		"nack":   func(d amqp.Delivery) error { return d.Nack(false, false) },
		"reject": func(d amqp.Delivery) error { return d.Reject(false) },
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			b := workingWith(t, "consumer", "quorum")
			beingRetried(t, b, "consumer", func() {
				const times = counted + 5
				b.Publish(t, "", "work", persistent("never parked"))
				waited(t, failingBut(t, b, times, fail), slices.Repeat([]time.Duration{ms(100)}, times-1)...)
			}, `delays = ["100ms"]`, `max_attempts = 2`, `work_queues = { work = {} }`)
		})
	}
}
