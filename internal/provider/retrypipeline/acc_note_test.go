package retrypipeline_test

import (
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// A note of a deleted binding that somebody has changed ends plans and destroys, which say what to do. Nothing is
// deleted or bound.
func TestAcc_GarbledNoteOfADeletedBinding(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`)
	steps := []resource.TestStep{{Config: config}}
	for _, garbage := range []any{"{", 7, `{"source":"amq.topic","queue":"orders.inbox","key":"#"}`, `{"source":"","queue":"q"}`} {
		at := b.Path("bindings", "e", "orders.return", "e", "orders.failed")
		var before acctest.Listing
		same := func() {
			if err := before.RequireSame(acctest.List(t, b)); err != nil {
				t.Errorf("%v: %v", garbage, err)
			}
		}
		steps = append(steps,
			resource.TestStep{
				PreConfig: func() {
					b.Call(t, http.MethodPost, at, map[string]any{"routing_key": "unbound:0123", "arguments": map[string]any{"retry-unbound": garbage}}, nil)
					before = acctest.List(t, b)
				},
				Config: config, ExpectError: says("Unreadable note of a deleted binding.*delete this one"),
			},
			resource.TestStep{PreConfig: same, Config: config, Destroy: true, ExpectError: says("Unreadable note of a deleted binding")},
			resource.TestStep{
				PreConfig: func() {
					same()
					var found []struct {
						Key string `json:"properties_key"`
					}
					b.Call(t, http.MethodGet, at, nil, &found)
					b.Call(t, http.MethodDelete, at+"/"+found[0].Key, nil, nil)
				},
				Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
		)
	}
	acceptQuickly(t, b, steps...)
}
