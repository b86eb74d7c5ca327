package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// An update that the broker refuses half-way: what was made stays, the next plan shows what is left to
// do and nothing else, and apply does it. Queues are made side by side, so the one that the broker would
// take may not have been begun when it refuses the other.
func TestAcc_FailedUpdateIsFinishedByTheNextOne(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	user, password := b.User(t, "policymaker", `^(orders\.(dlx|failed(\.route)?|retry|return|inbox|retry\.(5s|1m|0\.refused))|work)$`, ".*", ".*")
	withUser := fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password)
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
			ExpectError: regexp.MustCompile(`(?s)(begun but not finished|Nothing was changed).*orders\.retry\.2m`),
		},
		resource.TestStep{
			Config: after,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{either{left, slices.Concat(left, onlyDiffers{"queues orders.retry.1m"})}},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		},
	)
}

// A creation that the broker refuses half-way, when a consumer has rejected a message already: everything
// stays, the import that the error names finds it, the next plan shows what is missing and nothing else,
// and the message is still there.
func TestAcc_FailedCreateThatHoldsMessagesIsImported(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work.a", "quorum", nil)
	b.DeclareQueue(t, "work.b", "quorum", nil)
	var once sync.Once
	endpoint := b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/retry/orders/quorum-queues") {
			once.Do(func() {
				eventuallyPolicy(t, b, "work.a", "retry/orders/queue/work.a")
				rejectOne(t, b, "work.a")
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
			Config: fmt.Sprintf("provider \"rabbitmq\" {\n  endpoint = %q\n}\n", endpoint) + refused,
			ExpectError: regexp.MustCompile(`(?s)Cannot create the pipeline.*answered 400.*all that was made stays.*orders\.inbox: 1 message` +
				`.*Leftover objects are not in state.*terraform import rabbitmq_retry_pipeline\.<name> '` + regexp.QuoteMeta(id) + `'`),
		},
		resource.TestStep{Config: right, ResourceName: address, ImportState: true, ImportStateId: id, ImportStatePersist: true},
		resource.TestStep{
			Config: right,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{onlyDiffers{before, after, "policies retry/orders/queues"}},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		},
		resource.TestStep{PreConfig: func() { emptyInbox(t, b, 1) }, Config: right},
	)
}

// A replacement that would lose messages is refused before anything is created, and proposed again.
func TestAccEveryRelease_ReplacementRefusesWhileMessagesAreHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	work := `max_attempts = 3`
	renamed := fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"orders\" {\n  name = \"bills\"\n  vhost = %q\n  delays = [\"5s\"]\n  %s\n}\n", b.Vhost, work)
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, work)},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "orders.failed", "k", persistent("parked")) },
			Config:      renamed,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.failed: 1 message`),
		},
		resource.TestStep{
			Config:           pipelineHCL(b, `delays = ["5s"]`, work),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{
			PreConfig: func() {
				if err := arrived(t, b, "orders.failed", "parked"); err != nil {
					t.Error(err)
				}
			},
			Config: renamed,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionReplace)},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		},
	)
}
