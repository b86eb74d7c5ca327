package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A queue whose policy is away for a moment while its priority falls loses its pending dead letters.
func TestAccEveryRelease_LoweredPriorityKeepsPendingDeadLetters(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	const messages = 3
	work := `work_queues = { "work" = {} }`
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, work)},
		resource.TestStep{
			PreConfig: func() { holdDeadLetters(t, b, "work", messages) },
			Config:    pipelineHCL(b, `delays = ["5s"]`, work, `policy_priority = 900`),
			Check: func(*terraform.State) error {
				emptyInbox(t, b, messages)
				return nil
			},
		},
	)
}

// holdDeadLetters has a work queue hold so many dead letters, since the dead-letter exchange is missing.
func holdDeadLetters(t *testing.T, b *brokertest.Broker, queue string, messages int) {
	t.Helper()
	b.Call(t, http.MethodDelete, b.Path("exchanges", "orders.dlx"), nil, nil)
	for range messages {
		rejectOne(t, b, queue)
	}
	brokertest.Eventually(t, func() error {
		if held := reported(t, b, queue, "messages_dlx"); held != messages {
			return fmt.Errorf("%d dead letters are held, want %d", held, messages)
		}
		return nil
	})
}

// Brokers check policies when they are written. Where that is the first write, nothing was begun.
func TestAcc_UpdateWhoseFirstWriteIsRefusedHasChangedNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	delays, work := `delays = ["5s"]`, `work_queues = { work = {} }`
	acceptQuickly(t, b,
		resource.TestStep{Config: pipelineHCL(b, delays, work)},
		resource.TestStep{
			Config:      pipelineHCL(b, delays, `work_queues = { work = { policy_definition_json = jsonencode({ "max-nonsense" = 1 }) } }`),
			ExpectError: regexp.MustCompile(`(?s)Nothing\s+was\s+changed.*\[{<<"max-nonsense">>,1}\]`),
		},
		resource.TestStep{Config: pipelineHCL(b, delays, work), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	)
}

// An update that fails half-way leaves policies that neither the state nor the configuration knows. What
// the queues hold because of them is not lost with the next change, nor with a destroy.
func TestAccEveryRelease_FailedUpdateKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	b.DeclareQueue(t, "worse", "quorum", nil)
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
			PreConfig: func() { b.Call(t, http.MethodDelete, b.Path("queues", "worse"), nil, nil) },
			Config:    pipelineHCL(b, delays, `work_queues = { work = {} }`),
			Check: func(*terraform.State) error {
				emptyInbox(t, b, messages)
				return nil
			},
		},
	)
}

// The policy covers every delay that can be written.
func TestAccEveryRelease_PolicyCoversFractionsOfASecond(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	acceptQuickly(t, b, resource.TestStep{
		PreConfig: func() {
			b.Call(t, http.MethodPut, b.Path("policies", "org"), map[string]any{"pattern": ".*", "apply-to": "queues", "definition": map[string]any{"expires": 600_000}}, nil)
		},
		Config: pipelineHCL(b, `delays = ["1500ms", "90500ms"]`),
		Check: func(*terraform.State) error {
			for _, queue := range []string{"orders.retry.1.5s", "orders.retry.1m30.5s"} {
				brokertest.Eventually(t, func() error {
					var found struct{ Policy string }
					b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &found)
					if found.Policy != "retry/orders/queues" {
						return fmt.Errorf("%s has the policy %q", queue, found.Policy)
					}
					return nil
				})
			}
			b.Call(t, http.MethodDelete, b.Path("policies", "org"), nil, nil)
			return nil
		},
	})
}
