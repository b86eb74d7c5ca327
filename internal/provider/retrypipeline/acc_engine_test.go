package retrypipeline_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// engineCase is a pipeline without a worker.
type engineCase struct {
	engine, since, tooOld string
	lines                 []string
	deadLetterExchange    string
	// objects are all that the pipeline has.
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
			engine: "consumer", since: "4.0", tooOld: `Before\s+4\.0`, deadLetterExchange: "orders.retry",
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

// A pipeline without a worker is made, shown, repaired object by object, imported and destroyed as any other. Where the
// broker is too old, the plan says so.
func TestAccEveryRelease_EngineWithoutWorker(t *testing.T) {
	t.Parallel()
	for _, c := range engineCases() {
		t.Run(c.engine, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			b.DeclareQueue(t, "work", "quorum", nil)
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

// drifts are what takes each object away.
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

// What an engine cannot do is refused at the attribute, on every release.
func TestAccEveryRelease_EngineCannot(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	refused := map[string]string{
		`engine = "nativ"` + "\n" + `delays = ["1s"]`:                                                                                                        `must be one of: \["worker" "native" "consumer"\]`,
		`engine = "native"` + "\n" + `delays = ["5s", "30s", "5m"]`:                                                                                          `(?s)twice,\s+three\s+times`,
		`engine = "native"` + "\n" + `delays = ["0s", "1s"]`:                                                                                                 `(?s)every\s+retry\s+waits`,
		`engine = "native"` + "\n" + `delays = ["1s"]` + "\n" + `max_age = "1h"`:                                                                             `max_age without a sidecar`,
		`engine = "native"` + "\n" + `delays = ["1s"]` + "\n" + `retry_on = ["rejected", "expired"]`:                                                         `retry_on without a sidecar`,
		`engine = "native"` + "\n" + `delays = ["1s"]` + "\n" + `work_queues = { work = { type = "classic" } }`:                                              `(?s)Queue\s+"work"\s+is\s+classic`,
		`engine = "native"` + "\n" + `delays = ["1s"]` + "\n" + `work_queues = { work = { max_attempts = 3 } }`:                                              `(?s)work_queues\["work"\]\.max_attempts:\s+With\s+engine`,
		`engine = "native"` + "\n" + `delays = ["1s"]` + "\n" + `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 3 }) } }`: `(?s)"delivery-limit"\s+cannot\s+be\s+set`,
		`engine = "consumer"` + "\n" + `delays = ["1s", "2s"]`:                                                                                               `(?s)2\s+delays\s+are\s+listed`,
		`engine = "consumer"` + "\n" + `delays = ["1s"]` + "\n" + `max_age = "1h"`:                                                                           `max_age without a sidecar`,
		`engine = "consumer"` + "\n" + `delays = ["1s"]` + "\n" + `work_queues = { work = { max_attempts = 3 } }`:                                            `(?s)work_queues\["work"\]\.max_attempts:\s+With\s+engine`,
	}
	var steps []resource.TestStep
	for _, lines := range slices.Sorted(maps.Keys(refused)) {
		steps = append(steps, resource.TestStep{Config: pipelineHCL(b, lines), PlanOnly: true, ExpectError: regexp.MustCompile(refused[lines])})
	}
	acceptQuickly(t, b, steps...)
}

// A pipeline with work queues does not change its engine; one without is replaced.
func TestAccEveryRelease_EngineChanges(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	if !b.VersionAtLeast("4.0") {
		t.Skip("only engine = \"worker\" is supported by this release")
	}
	b.DeclareQueue(t, "work", "quorum", nil)
	lines := func(engine, queues string) string {
		return pipelineHCL(b, fmt.Sprintf("engine = %q", engine), `delays = ["1s"]`, fmt.Sprintf("work_queues = { %s }", queues))
	}
	replaced := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionDestroyBeforeCreate)}}
	acceptQuickly(t, b,
		resource.TestStep{Config: lines("worker", "work = {}")},
		resource.TestStep{Config: lines("consumer", "work = {}"), ExpectError: regexp.MustCompile(`(?s)A pipeline with work queues would be replaced.*take_over_from`)},
		resource.TestStep{Config: lines("worker", "")},
		resource.TestStep{Config: lines("consumer", ""), ConfigPlanChecks: replaced},
		resource.TestStep{Config: lines("consumer", "work = {}")},
		resource.TestStep{Config: lines("worker", "work = {}"), ExpectError: regexp.MustCompile(`(?s)A pipeline with work queues would be replaced.*take_over_from`)},
	)
}
