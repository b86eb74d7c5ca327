package retrypipeline_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// later is what the pipelines of [laterPipelines] know only when another resource has been applied.
const later = "terraform_data.later.output"

// laterPipelines are pipelines in one configuration, each in a vhost of its own and with a setting that comes from
// another resource. Terraform starts a dozen processes for each step of a configuration, however large it is.
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

// setting begins each setting. Settings are separated by commas, which HCL wants on lines of their own.
var setting = regexp.MustCompile(`(?:, |^)(\w+ = )`)

// add adds a pipeline with these settings, for which later is each of the inputs in turn.
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

// apply applies all pipelines step by step: a plan after each step has nothing to do, and in the end nothing is left.
func (p *laterPipelines) apply(t *testing.T) {
	t.Helper()
	empty := resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	var steps []resource.TestStep
	for _, config := range p.steps {
		steps = append(steps, resource.TestStep{Config: config, ConfigPlanChecks: empty})
	}
	acctest.RunTerraform(t, acctest.Quick(), steps...)
	for i, name := range p.names {
		t.Run(name, func(t *testing.T) {
			if err := nothingLeft(t, p.vhosts[i]); err != nil {
				t.Error(err)
			}
		})
	}
}
