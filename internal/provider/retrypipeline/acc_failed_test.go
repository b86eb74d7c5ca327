package retrypipeline_test

import (
	"fmt"
	"regexp"
	"slices"
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
	declare(t, b, "work", "quorum")
	user, password := b.User(t, "policymaker", `^(orders\.(dlx|failed|retry|return|inbox|retry\.(5s|1m))|work)$`, ".*", ".*")
	withUser := fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password)
	before := pipeline(b, `delays = ["5s"]`)
	after := pipeline(b, `delays = ["5s", "1m", "2m"]`, `work_queues = { work = {} }`)
	const definition = `bindings orders.dlx -> orders.inbox retry-definition={"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}`
	const next = `bindings orders.dlx -> orders.inbox retry-definition={"version":1,"delays":["5s","1m","2m"],"max_attempts":4,"retry_on":["rejected"]}`
	left := onlyDiffers{
		definition, next,
		"bindings orders.retry -> orders.retry.1m [delay:1m]",
		"bindings orders.retry -> orders.retry.2m [delay:2m]", "queues orders.retry.2m",
		"bindings orders.return -> work [return:work]", "policies retry/orders/fallback", "policies retry/orders/queues",
	}
	accept(t, b,
		resource.TestStep{Config: withUser + before},
		resource.TestStep{
			Config:      withUser + after,
			ExpectError: regexp.MustCompile(`(?s)begun but not finished.*orders\.retry\.2m`),
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

// A replacement that would lose messages is refused before anything is created, and proposed again.
func TestAcc_ReplacementRefusesWhileMessagesAreHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	declare(t, b, "work", "quorum")
	work := `work_queues = { work = {} }`
	renamed := fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"orders\" {\n  name = \"bills\"\n  vhost = %q\n  delays = [\"5s\"]\n  %s\n}\n", b.Vhost, work)
	accept(t, b,
		resource.TestStep{Config: pipeline(b, `delays = ["5s"]`, work)},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "orders.failed", "k", persistent("parked")) },
			Config:      renamed,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.failed: 1 message`),
		},
		resource.TestStep{
			Config:           pipeline(b, `delays = ["5s"]`, work),
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
