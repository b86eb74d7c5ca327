package retrypipeline_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// The broker refuses an update halfway. Finished changes stay, the next plan shows only the remaining changes, and apply
// makes them. Queues are created in parallel, so when the broker refuses one queue, the other can still be missing.
func TestAcc_FailedUpdateIsFinishedByTheNextOne(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	withUser := as(b.User(t, "policymaker", `^(orders\.(dlx|failed(\.route)?|retry|return|inbox|retry\.(5s|1m|0\.refused))|work)$`, ".*", ".*"))
	before := pipelineHCL(b, `delays = ["5s"]`)
	after := pipelineHCL(b, `delays = ["5s", "1m", "2m"]`, `work_queues = { work = {} }`)
	const definition = `bindings orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}'`
	const next = `bindings orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s","1m","2m"],"max_attempts":4,"retry_on":["rejected"]}'`
	left := onlyDiffers{
		definition, next,
		"bindings orders.retry -> orders.retry.1m [delay:1m]",
		"bindings orders.retry -> orders.retry.2m [delay:2m]", "queues orders.retry.2m",
		"bindings orders.return -> work [return:work]", "policies retry/orders/queues",
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: withUser + before},
		resource.TestStep{
			Config:      withUser + after,
			ExpectError: regexp.MustCompile(`(?s)(begun but not finished|Nothing of this resource was changed).*orders\.retry\.2m`),
		},
		resource.TestStep{
			Config:           after,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{either{left, slices.Concat(left, onlyDiffers{"queues orders.retry.1m"})}}},
		},
	)
}

// The broker refuses a creation halfway, when a consumer has already rejected a message. All objects stay, and the import
// that the error names finds them. The next plan shows only the missing objects, and the message is still there.
func TestAcc_FailedCreateThatHoldsMessagesIsImported(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work.a", "work.b")
	var once sync.Once
	endpoint := b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/retry/orders/quorum-queues") {
			once.Do(func() {
				awaitReported(t, b, "work.a", "policy", "retry/orders/queue/work.a")
				reject(t, b, "work.a", "rejected")
			})
		}
	})
	id := importID(b.Vhost, "orders")
	refused := pipelineHCL(b, `delays = ["5s"]`, `force_destroy = true`, `policy_definition_json = jsonencode({ nonsense = 1 })`,
		`work_queues = { "work.a" = { policy_definition_json = jsonencode({ nonsense = null, max-length-bytes = 1000000 }), dead_letter_strategy = "at-most-once" }, "work.b" = {} }`)
	right := pipelineHCL(b, `delays = ["5s"]`,
		`work_queues = { "work.a" = { policy_definition_json = jsonencode({ max-length-bytes = 1000000 }), dead_letter_strategy = "at-most-once" }, "work.b" = {} }`)
	const before = `bindings orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"],"policy_definition":{"nonsense":1}}'`
	const after = `bindings orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}'`
	accept(t, b,
		resource.TestStep{
			Config: at(endpoint) + refused,
			ExpectError: regexp.MustCompile(`(?s)Cannot create the pipeline.*answered 400.*the\s+created\s+objects\s+stay.*orders\.inbox: 1 message` +
				`.*Leftover objects are not in state.*terraform import rabbitmq_retry_pipeline\.<name> '` + regexp.QuoteMeta(id) + `'`),
		},
		resource.TestStep{Config: right, ResourceName: address, ImportState: true, ImportStateId: id, ImportStatePersist: true},
		resource.TestStep{
			Config:           right,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{onlyDiffers{before, after, "policies retry/orders/queues"}}},
		},
		resource.TestStep{PreConfig: func() { emptyInbox(t, b, 1) }, Config: right},
	)
}

// A replacement that would lose messages is refused before any object is created, and the next plan proposes it again.
func TestAccEveryRelease_ReplacementRefusesWhileMessagesAreHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	work := `max_attempts = 3`
	renamed := pipelineLabelled(b, "orders", "bills", `delays = ["5s"]`, work)
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, work)},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "orders.failed", "k", persistent("parked")) },
			Config:      renamed,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.failed: 1 message`),
		},
		resource.TestStep{
			Config: pipelineHCL(b, `delays = ["5s"]`, work), ConfigPlanChecks: unchanged,
		},
		resource.TestStep{
			PreConfig:        func() { takes(t, b, "orders.failed", "parked") },
			Config:           renamed,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionReplace)}},
		},
	)
}

// If a queue lost its policy for a moment while the priority decreases, its pending dead letters would be lost.
func TestAccEveryRelease_LoweredPriorityKeepsPendingDeadLetters(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	const messages = 3
	work := `work_queues = { "work" = {} }`
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, work)},
		resource.TestStep{
			PreConfig: func() { holdDeadLetters(t, b, "work", messages) },
			Config:    pipelineHCL(b, `delays = ["5s"]`, work, `policy_priority = 900`),
			Check:     func(*terraform.State) error { emptyInbox(t, b, messages); return nil },
		},
	)
}

// Brokers check policies when they are written. If that is the first write, the change has not begun.
func TestAcc_UpdateWhoseFirstWriteIsRefusedHasChangedNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	delays, work := `delays = ["5s"]`, `work_queues = { work = {} }`
	acceptQuickly(t, b,
		resource.TestStep{Config: pipelineHCL(b, delays, work)},
		resource.TestStep{
			Config:      pipelineHCL(b, delays, `work_queues = { work = { policy_definition_json = jsonencode({ "max-nonsense" = 1 }) } }`),
			ExpectError: regexp.MustCompile(`(?s)Nothing\s+of\s+this\s+resource\s+was\s+changed.*\[{<<"max-nonsense">>,1}\]`),
		},
		resource.TestStep{Config: pipelineHCL(b, delays, work), ConfigPlanChecks: unchanged},
	)
}

// An update that fails halfway leaves policies that neither the state nor the configuration has. Neither the next change nor
// a destroy loses messages that the queues hold because of them.
func TestAccEveryRelease_FailedUpdateKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work", "worse")
	const messages = 3
	delays := `delays = ["5s"]`
	loses := regexp.MustCompile(`(?s)would lose messages.*work: 3 `)
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, delays)},
		resource.TestStep{
			Config:      pipelineHCL(b, delays, `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) }, worse = { policy_definition_json = jsonencode({ "max-nonsense" = 1 }) } }`),
			ExpectError: regexp.MustCompile(`(?s)begun but not finished.*max-nonsense`),
		},
		resource.TestStep{
			PreConfig:   func() { holdDeadLetters(t, b, "work", messages) },
			Config:      pipelineHCL(b, delays),
			ExpectError: loses,
		},
		resource.TestStep{Config: pipelineHCL(b, delays), Destroy: true, ExpectError: loses},
		resource.TestStep{
			PreConfig: func() { deleted("queues", "worse")(t, b) },
			Config:    pipelineHCL(b, delays, `work_queues = { work = {} }`),
			Check:     func(*terraform.State) error { emptyInbox(t, b, messages); return nil },
		},
	)
}

// The policy matches the retry queues of all possible delays.
func TestAccEveryRelease_PolicyCoversFractionsOfASecond(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	acceptQuickly(t, b, resource.TestStep{
		PreConfig: func() {
			putPolicy(t, b, "policies", "org", ".*", 0, map[string]any{"expires": 600_000})
		},
		Config: pipelineHCL(b, `delays = ["1500ms", "90500ms"]`),
		Check: func(*terraform.State) error {
			for _, queue := range []string{"orders.retry.1.5s", "orders.retry.1m30.5s"} {
				awaitReported(t, b, queue, "policy", "retry/orders/queues")
			}
			deleted("policies", "org")(t, b)
			return nil
		},
	})
}
