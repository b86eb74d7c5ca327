package retrypipeline_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// later is the output of another resource, which the pipelines of [laterPipelines] know only after that resource was applied.
const later = "terraform_data.later.output"

// laterPipelines are pipelines in one configuration, each in its own vhost and with a setting from another resource.
// Terraform starts a dozen processes for each step of a configuration, however large it is.
type laterPipelines struct {
	names  []string
	vhosts []*brokertest.Broker
	steps  []string // configurations
}

// laterVhost is a vhost for one of the pipelines.
func laterVhost(t *testing.T, name string) *brokertest.Broker {
	t.Helper()
	b := brokertest.NewNamed(t, "later "+name)
	b.DeclareQueue(t, "work", "quorum", nil)
	b.DeclareQueue(t, "work.b", "quorum", nil)
	return b
}

// setting matches the beginning of each setting. Settings are separated by commas, but HCL wants each on its own line.
var setting = regexp.MustCompile(`(?:, |^)(\w+ = )`)

// add adds a pipeline with these settings. In turn, each of the inputs is later.
func (p *laterPipelines) add(b *brokertest.Broker, name, settings string, inputs ...string) {
	at := label(name)
	settings = strings.ReplaceAll(settings, later, "terraform_data."+at+".output")
	p.names, p.vhosts = append(p.names, name), append(p.vhosts, b)
	for i, input := range inputs {
		if i == len(p.steps) {
			p.steps = append(p.steps, "")
		}
		p.steps[i] += fmt.Sprintf("resource \"terraform_data\" %[1]q { input = %[2]s }\nresource \"rabbitmq_retry_pipeline\" %[1]q {%[3]s\n}\n",
			at, input, setting.ReplaceAllString(settings, "\n  $1"))
	}
}

// apply applies all pipelines step by step. After each step the plan is empty, and at the end no object is left.
func (p *laterPipelines) apply(t *testing.T) {
	t.Helper()
	var steps []resource.TestStep
	for _, config := range p.steps {
		steps = append(steps, resource.TestStep{Config: config})
	}
	acctest.RunTerraform(t, acctest.Quick(), steps...)
	for i, name := range p.names {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, acctest.NothingLeft(t, p.vhosts[i]))
		})
	}
}

// Any setting can come from a resource that the same apply creates or changes. When the pipeline is created and when it is
// changed, plan and apply agree, and the next plan is empty.
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
			lines += `, force_destroy = true` // the queues are empty, and proving that takes time
		}
		all.add(b, name, lines, c.before, c.after)
	}
	const forced = `, delays = ["5s"], force_destroy = true`
	for name, c := range map[string]struct{ lines, input string }{
		"name and a work queue":     {`name = ` + later + `, work_queues = { work = {} }`, `"orders"`},
		"type of a queue of others": {`name = "orders", work_queues = { work = { type = ` + later + ` } }`, `"quorum"`},
	} {
		b := laterVhost(t, name)
		all.add(b, name, fmt.Sprintf("vhost = %q, ", b.Vhost)+c.lines+forced, c.input)
	}
	b := laterVhost(t, "vhost")
	all.add(b, "vhost", `vhost = `+later+`, name = "orders", work_queues = { work = {} }`+forced, fmt.Sprintf("%q", b.Vhost))
	all.apply(t)
}

// The provider's endpoint changes together with its source, when the pipeline is created and when it is changed. The plan is
// made without the broker.
func TestAcc_EndpointThatChangesTogetherWithItsSource(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	at := func(endpoint string, lines ...string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"endpoint\" { input = %q }\nprovider \"rabbitmq\" { endpoint = terraform_data.endpoint.output }\n", endpoint) + pipelineHCL(b, lines...)
	}
	acceptTerraform(t, b,
		resource.TestStep{Config: at(b.Endpoint, `force_destroy = true`, `delays = ["5s"]`, `work_queues = { work = {} }`)},
		resource.TestStep{Config: at(b.Endpoint+"/", `force_destroy = true`, `delays = ["5s", "9s"]`, `policy_priority = 7`, `work_queues = { work = { dead_letter_strategy = "at-most-once" } }`)},
	)
}
