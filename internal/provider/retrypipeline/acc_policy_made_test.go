package retrypipeline_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A policy that the pipeline's would shadow is made by the same apply, after the plan: apply refuses
// it like the plan would have, creates nothing, and goes through once its keys are accounted for.
func TestAcc_ShadowedPolicyMadeByTheSameApply(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	remove := func() { b.Request(t, http.MethodDelete, b.Path("policies", "made"), nil) }
	config := func(serial int, lines ...string) string {
		return fmt.Sprintf(`
resource "terraform_data" "policy" {
  triggers_replace = %d
  provisioner "local-exec" {
    command = "curl -fsS -u %s:%s -H content-type:application/json -X PUT %s%s -d '{\"pattern\":\"^work$\",\"apply-to\":\"queues\",\"priority\":1,\"definition\":{\"delivery-limit\":9}}'"
  }
}
`, serial, b.Username, b.Password, b.Endpoint, b.Path("policies", "made")) +
			pipelineHCL(b, append(lines, `delays = ["5s"]`, `force_destroy = true`, `depends_on = [terraform_data.policy]`)...)
	}
	acceptTerraform(t, b,
		resource.TestStep{Config: config(1, `work_queues = { work = {} }`), ExpectError: says(`Keys of another policy would no longer apply.*"delivery-limit" = 9`)},
		resource.TestStep{
			PreConfig: func() {
				remove()
				if err := nothingLeft(t, b); err != nil {
					t.Error(err)
				}
			},
			Config:           config(2, `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{
			PreConfig: remove,
			Config:    config(2, `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`),
		},
	)
}
