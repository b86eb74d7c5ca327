package provider_test

import (
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

const forgettable = `
resource "rabbitmq_retry_pipeline" "all" {
  for_each    = toset([KEYS])
  name        = each.key
  vhost       = "VHOST"
  delays      = ["5s"]
  work_queues = { "${each.key}.created" = { declare = true } }
}
`

const forgets = `
removed {
  from = rabbitmq_retry_pipeline.all
  lifecycle { destroy = false }
}
`

// If Terraform forgets a resource, in either of two ways, its messages stay on the broker, and an import restores it.
func TestAcc_ForgottenAndImportedAgain(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	tf := acctest.NewCLI(t, acctest.Times())
	tf.Write(t, "versions.tf", terraformtest.Required)
	configure := func(config string, pipelines ...string) {
		t.Helper()
		for i, name := range pipelines {
			pipelines[i] = fmt.Sprintf("%q", name)
		}
		tf.Write(t, "main.tf", strings.NewReplacer("VHOST", b.Vhost, "KEYS", strings.Join(pipelines, ", ")).Replace(config))
	}
	planned := func(what, says string, args ...string) {
		t.Helper()
		if output := tf.Run(t, append([]string{"plan", "-no-color"}, args...)...); !strings.Contains(output, says) {
			t.Errorf("%s: the plan does not say %q:\n%s", what, says, output)
		}
	}
	imported := func(name string) {
		t.Helper()
		tf.Run(t, "import", "-no-color", fmt.Sprintf("rabbitmq_retry_pipeline.all[%q]", name), b.Vhost+"/"+name)
	}
	const messages = 10
	kept := func(name string) {
		t.Helper()
		queue, err := b.Channel(t).QueueDeclarePassive(name+".failed", true, false, false, false, nil)
		if err != nil || queue.Messages != messages {
			t.Errorf("%s has %d messages, want %d: %v", queue.Name, queue.Messages, messages, err)
		}
	}

	configure(forgettable, "orders", "bills")
	tf.Run(t, "apply", "-auto-approve", "-no-color")
	for _, name := range []string{"orders", "bills"} {
		for range messages {
			b.Publish(t, name+".failed", "", amqp.Publishing{DeliveryMode: amqp.Persistent})
		}
	}

	tf.Run(t, "state", "rm", `rabbitmq_retry_pipeline.all["orders"]`)
	configure(forgettable, "bills")
	planned("one of two forgotten", "No changes.")
	configure(forgettable, "orders", "bills")
	imported("orders")
	planned("the one imported", "No changes.")
	kept("orders")

	configure(forgets)
	planned("a destroy before the apply", "2 to destroy", "-destroy")
	tf.Run(t, "apply", "-auto-approve", "-no-color")
	tf.Run(t, "destroy", "-auto-approve", "-no-color")
	configure(forgettable, "orders", "bills")
	for _, name := range []string{"orders", "bills"} {
		imported(name)
	}
	planned("both imported", "No changes.")
	for _, name := range []string{"orders", "bills"} {
		kept(name)
	}
}
