package retrypipeline_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Brokers leave line breaks out of the names of queues and exchanges, so those are errors of the plan. They keep those of
// vhosts, of policies and of bindings, which are no obstacle.
func TestAcc_NamesWithLineBreaks(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "vhost\r\nwith line breaks\n")
	for kind, body := range map[string]any{"queues": map[string]any{"durable": true}, "exchanges": map[string]any{"type": "topic"}} {
		b.Call(t, http.MethodPut, b.Path(kind, "foreign\r\nname"), body, nil)
		if found := acctest.Names(t, b, kind); !slices.Contains(found, "foreignname") {
			t.Errorf("%s: %q", kind, found)
		}
	}
	b.Call(t, http.MethodPost, b.Path("bindings", "e", "foreignname", "q", "foreignname"), map[string]any{"routing_key": "k\r\ney"}, nil)
	b.Call(t, http.MethodPut, b.Path("policies", "foreign\npolicy"), map[string]any{
		"pattern": "^work$", "apply-to": "queues", "priority": 1, "definition": map[string]any{"queue-leader-locator": "balanced"},
	}, nil)
	declared := `work_queues = { work = { declare = true, policy_definition_json = jsonencode({ "queue-leader-locator" = "balanced" }) } }`
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{
			Config:   pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "wo\nrk" = { declare = true } }`),
			PlanOnly: true, ExpectError: says(`Line break in a queue's name`),
		},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, `work_queues = { work = { declare = true } }`), PlanOnly: true, ExpectError: says(`foreign\\npolicy`)},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, declared)},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodPost, b.Path("bindings", "e", "foreignname", "q", "work"), map[string]any{"routing_key": "k\r\ney", "arguments": map[string]any{"a\nb": "c\r\nd"}}, nil)
			},
			Config: pipelineHCL(b, `delays = ["5s"]`, declared), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`), ExpectError: says(`foreignname -> work`)},
		resource.TestStep{PreConfig: func() { unbound("foreignname", "work")(t, b) }, Config: pipelineHCL(b, `delays = ["5s"]`)},
	)
}
