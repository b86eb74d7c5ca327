package retrypipeline_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

func TestAcc_ForceDestroyDeletesWhatIsHeld(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			b.DeclareQueue(t, "work", queueType, nil)
			config := pipelineHCL(b, `delays = ["1h"]`, `queue_type = "`+queueType+`"`, `force_destroy = true`, `work_queues = { "work" = { type = "`+queueType+`" } }`)
			accept(t, b,
				resource.TestStep{Config: config},
				resource.TestStep{PreConfig: func() {
					b.Publish(t, "orders.failed", "", persistent("parked"))
					b.Publish(t, "orders.retry", "delay:1h", persistent("waiting"))
				}, RefreshState: true},
			)
		})
	}
}

// A destroy that may wait goes through as soon as somebody has dealt with what is left.
func TestAcc_DestroyWaitsUntilQueuesAreDrained(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`, `timeouts = { delete = "3m" }`)
	accept(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "orders.failed", "", persistent("parked"))
				// The destroy is over 15 s into its wait by then, after which it would refuse.
				time.AfterFunc(25*time.Second, func() {
					b.Request(t, http.MethodDelete, b.Path("queues", "orders.failed")+"/contents", nil)
				})
			},
			Config: config, Destroy: true,
		},
	)
}

// With timeouts.update the apply itself waits for what left the schedule.
func TestAccEveryRelease_UpdateWaitsForRetiredQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	wait := `timeouts = { update = "2m" }`
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s", "15s"]`, wait)},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "orders.retry", "delay:15s", persistent("waiting"))
				eventuallyReported(t, b, "orders.retry.15s", 1)
			},
			Config: pipelineHCL(b, `delays = ["5s"]`, wait),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_queues"), knownvalue.MapSizeExact(0))},
		},
		resource.TestStep{
			PreConfig: func() {
				// It came back through the return exchange, to which no work queue is bound.
				if m, ok := b.Get(t, "orders.inbox"); !ok || string(m.Body) != "waiting" {
					t.Error("the message that waited is gone")
				}
				if status, _ := b.Request(t, http.MethodGet, b.Path("queues", "orders.retry.15s"), nil); status != http.StatusNotFound {
					t.Errorf("the retired queue is still there: %d", status)
				}
			},
			Config: pipelineHCL(b, `delays = ["5s"]`, wait),
		},
	)
}

// A worker gets the new schedule after the apply. If none of its delays stayed bound, it could send nothing back.
func TestAcc_ReplacedScheduleKeepsTheOldQueuesForAnotherApply(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	wait := `timeouts = { update = "2m" }`
	bound := func(delay string) bool {
		status, found := b.Request(t, http.MethodGet, b.Path("bindings", "e", "orders.retry", "q", "orders.retry."+delay), nil)
		return status == http.StatusOK && strings.Contains(string(found), "delay:"+delay)
	}
	after := pipelineHCL(b, `delays = ["0s", "2s", "4s"]`, wait)
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["0s", "1s", "3s"]`, wait)},
		resource.TestStep{
			Config: after,
			Check: func(*terraform.State) error {
				for _, delay := range []string{"1s", "2s", "3s", "4s"} {
					if !bound(delay) {
						t.Errorf("%s is not bound", delay)
					}
				}
				return nil
			},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_queues"), knownvalue.MapSizeExact(2)),
			},
			ExpectNonEmptyPlan: true, // which removes what is seen to be empty
		},
		resource.TestStep{
			Config: after,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			Check: func(*terraform.State) error {
				if bound("1s") || bound("3s") {
					t.Error("the old delays are still bound")
				}
				return nil
			},
		},
	)
}

// How long the apply waits decides what the plan removes, so both are known, or neither is.
func TestAcc_WaitThatIsKnownLater(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := func(wait, delays string) string {
		return "resource \"terraform_data\" \"wait\" {\n  input = \"" + wait + "\"\n}\n" +
			pipelineHCL(b, `delays = [`+delays+`]`, `timeouts = { update = terraform_data.wait.output }`)
	}
	acceptTerraform(t, b,
		resource.TestStep{Config: config("1m", `"5s", "15s"`)},
		resource.TestStep{Config: config("2m", `"5s"`)},
		resource.TestStep{Config: config("2m", `"5s"`), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	)
}
