package retrypipelinedata_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// The data source shows the same values as the resource, and also queues attached elsewhere.
func TestAcc_PipelineOfAnotherConfiguration(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work", "attached")
	const owner, read = "rabbitmq_retry_pipeline.orders", "data.rabbitmq_retry_pipeline.orders"
	config := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name        = "orders"
  vhost       = %[1]q
  delays      = ["5s", "1m"]
  max_age     = "24h"
  work_queues = { work = { max_attempts = 7, failed_queue = { name = "given-up" } } }
}

resource "rabbitmq_retry_attachment" "attached" {
  pipeline     = rabbitmq_retry_pipeline.orders.name
  vhost        = %[1]q
  queue        = "attached"
  failed_queue = { name = "given-up", declare = false }
}

data "rabbitmq_retry_pipeline" "orders" {
  name       = "orders"
  vhost      = %[1]q
  depends_on = [rabbitmq_retry_attachment.attached]
}

output "merged" {
  value = provider::rabbitmq::merge_permissions(data.rabbitmq_retry_pipeline.orders.worker_permissions, data.rabbitmq_retry_pipeline.orders.operator_permissions["list"])
}
`, b.Vhost)
	same := func(attribute string) statecheck.StateCheck {
		return statecheck.CompareValuePairs(owner, tfjsonpath.New(attribute), read, tfjsonpath.New(attribute), compare.ValuesSame())
	}
	theirs := knownvalue.ObjectExact(map[string]knownvalue.Check{"name": knownvalue.StringExact("given-up"), "declare": knownvalue.Bool(false)})
	workQueues := tfjsonpath.New("worker").AtMapKey("work_queues")
	acctest.RunTerraform(t, acctest.Quick(),
		resource.TestStep{Config: config, ConfigStateChecks: []statecheck.StateCheck{
			same("dead_letter_exchange"), same("inbox_queue"), same("failed_queue_name"), same("gives_up_after"),
			same("worker_permissions"), same("operator_permissions"), same("work_queues"),
			statecheck.CompareValuePairs(owner, workQueues.AtMapKey("work"), read, workQueues.AtMapKey("work"), compare.ValuesSame()),
			statecheck.ExpectKnownValue(read, workQueues.AtMapKey("attached").AtMapKey("failed_queue"), theirs),
			statecheck.ExpectKnownValue(read, tfjsonpath.New("worker").AtMapKey("max_age"), knownvalue.StringExact("24h")),
			statecheck.ExpectKnownValue(read, tfjsonpath.New("attachments"), knownvalue.MapExact(map[string]knownvalue.Check{
				"attached": knownvalue.ObjectExact(map[string]knownvalue.Check{
					"type": knownvalue.StringExact("quorum"), "attach": knownvalue.StringExact("policy"), "policy_priority": knownvalue.Int64Exact(1000),
					"dead_letter_strategy": knownvalue.Null(), "policy_definition_json": knownvalue.Null(), "take_over_from": knownvalue.Null(),
					"failed_queue": theirs,
				}),
			})),
			statecheck.ExpectKnownOutputValue("merged", knownvalue.ObjectExact(map[string]knownvalue.Check{
				"configure": knownvalue.StringExact("^$"),
				"read":      knownvalue.StringExact(`^(orders\.failed)$|^(orders\.inbox)$`),
				"write":     knownvalue.StringExact(`^(amq\.default|orders\.failed|orders\.failed\.route|orders\.retry|orders\.return)$`),
			})),
		}},
	)
}

func TestAcc_PipelineThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.Call(t, http.MethodPut, b.Path("exchanges", "orders.dlx"), map[string]any{"type": "fanout", "durable": true}, nil)
	config := func(name, vhost string) string {
		return fmt.Sprintf("data \"rabbitmq_retry_pipeline\" \"it\" {\n  name = %q\n  vhost = %q\n}\n", name, vhost)
	}
	acctest.RunTerraform(t, acctest.Quick(),
		resource.TestStep{Config: config("orders", b.Vhost), ExpectError: regexp.MustCompile(`Cannot\s+read\s+the\s+pipeline[\s\S]*there\s+is\s+no\s+pipeline`)},
		resource.TestStep{Config: config("a/b", b.Vhost), ExpectError: regexp.MustCompile(`Reserved\s+character`)},
		resource.TestStep{Config: config("orders", "not there"), ExpectError: regexp.MustCompile(`not\s+there`)},
	)
}

// The documentation's example reads two pipelines.
func TestAcc_ExampleReadsPipelinesOfOthers(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	example, err := os.ReadFile("../../../examples/data-sources/rabbitmq_retry_pipeline/data-source.tf")
	require.NoError(t, err)
	owned := fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"owned\" {\n  for_each = toset([\"orders\", \"invoices\"])\n  name = each.key\n  vhost = %q\n  delays = [\"5s\"]\n}\n", b.Vhost)
	read := strings.Replace(string(example), "= each.key\n", fmt.Sprintf("= each.key\n  vhost = %q\n  depends_on = [rabbitmq_retry_pipeline.owned]\n", b.Vhost), 1)
	outputs := "output \"pipelines\" { value = length(jsondecode(local.worker_json).pipelines) }\noutput \"read\" { value = local.worker_permissions.read }\n"
	acctest.Require(t)
	tf := acctest.NewCLI(t, acctest.Times())
	tf.Write(t, "main.tf", terraformtest.Required+owned+read+outputs)
	tf.Run(t, "apply", "-auto-approve", "-input=false")
	if got := tf.Run(t, "output", "-raw", "pipelines"); got != "2" {
		t.Errorf("%s pipelines", got)
	}
	if got := tf.Run(t, "output", "-raw", "read"); got != `^(invoices\.inbox)$|^(orders\.inbox)$` {
		t.Errorf("read %s", got)
	}
}
