package retrypipeline_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// Any setting may come from a resource that is made, or changed, by the same apply: when the pipeline
// is created and when it is changed, plan and apply agree, and afterwards there is nothing to do.
func TestAcc_SettingsThatChangeTogetherWithTheirSource(t *testing.T) {
	t.Parallel()
	settings := map[string]struct {
		lines         string
		before, after string
	}{
		"name":                 {`name = ` + later + `, delays = ["5s"]`, `"orders"`, `"bills"`},
		"delay":                {`delays = [` + later + `, "9s"]`, `"5s"`, `"5000ms"`},
		"delays":               {`delays = ` + later, `["5s"]`, `["5s", "9s"]`},
		"attempts":             {`delays = ["5s"], max_attempts = ` + later, `5`, `6`},
		"age":                  {`delays = ["5s"], max_age = ` + later, `"1h"`, `"2h"`},
		"its attempts":         {`delays = ["5s"], work_queues = { work = { max_attempts = ` + later + ` } }`, `3`, `4`},
		"reasons":              {`delays = ["5s"], retry_on = ` + later, `["rejected"]`, `["rejected", "expired"]`},
		"queue type":           {`delays = ["5s"], queue_type = ` + later, `"quorum"`, `"classic"`},
		"policy priority":      {`delays = ["5s"], policy_priority = ` + later, `20`, `10`},
		"policy definition":    {`delays = ["5s"], policy_definition_json = ` + later + `, work_queues = { work = {} }`, `"{\"delivery-limit\":5}"`, `"{\"delivery-limit\":6}"`},
		"work queues":          {`delays = ["5s"], work_queues = ` + later, `{ work = {} }`, `{ work = {}, "work.b" = {} }`},
		"work queue":           {`delays = ["5s"], work_queues = { (` + later + `) = {} }`, `"work"`, `"work.b"`},
		"its type":             {`delays = ["5s"], work_queues = { "work.paid" = { declare = true, type = ` + later + ` } }`, `"quorum"`, `"classic"`},
		"its declaration":      {`delays = ["5s"], work_queues = { "work.paid" = { declare = ` + later + ` } }`, `true`, `false`},
		"its arguments":        {`delays = ["5s"], work_queues = { "work.paid" = { declare = true, arguments_json = ` + later + ` } }`, `"{\"a\":1}"`, `"{\"a\":2}"`},
		"its attachment":       {`delays = ["5s"], work_queues = { "work.paid" = { declare = true, attach = ` + later + ` } }`, `"policy"`, `"arguments"`},
		"its strategy":         {`delays = ["5s"], work_queues = { work = { dead_letter_strategy = ` + later + ` } }`, `"at-least-once"`, `"at-most-once"`},
		"its keys":             {`delays = ["5s"], work_queues = { work = { policy_definition_json = ` + later + ` } }`, `"{\"delivery-limit\":5}"`, `"{\"delivery-limit\":6}"`},
		"whether it is forced": {`delays = ["5s"], force_destroy = ` + later, `false`, `true`},
	}
	var all laterPipelines
	for name, c := range settings {
		b := laterVhost(t, name)
		lines := fmt.Sprintf("vhost = %q, ", b.Vhost) + c.lines
		if name != "name" {
			lines = `name = "orders", ` + lines
		}
		if name != "whether it is forced" {
			lines += `, force_destroy = true` // the queues are empty, and a proof of that takes its time
		}
		all.add(b, name, lines, c.before, c.after)
	}
	all.apply(t)
}

// The provider's endpoint changes together with its source, when the pipeline is created and when it
// is changed: the plan is made without a look at the broker.
func TestAcc_EndpointThatChangesTogetherWithItsSource(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	at := func(endpoint string, lines ...string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"endpoint\" { input = %q }\nprovider \"rabbitmq\" { endpoint = terraform_data.endpoint.output }\n", endpoint) + pipelineHCL(b, lines...)
	}
	empty := resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	acceptTerraform(t, b,
		resource.TestStep{Config: at(b.Endpoint, `force_destroy = true`, `delays = ["5s"]`, `work_queues = { work = {} }`), ConfigPlanChecks: empty},
		resource.TestStep{Config: at(b.Endpoint+"/", `force_destroy = true`, `delays = ["5s", "9s"]`, `policy_priority = 7`, `work_queues = { work = { dead_letter_strategy = "at-most-once" } }`), ConfigPlanChecks: empty},
	)
}
