package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

const (
	notCompared = "The plan was not compared with the broker"
	dropped     = "Rejected messages are dropped"
)

// If the plan cannot read the broker, it says so, and the apply gives the plan's other warnings.
func TestAcc_WarningsOfAnUnknownEndpoint(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.WithQueues(t, "work")
	tf := acctest.NewCLI(t, acctest.Times())
	configure := func(revision, more string) {
		tf.Write(t, "main.tf", fmt.Sprintf(required+`
resource "terraform_data" "broker" { triggers_replace = %q }
provider "rabbitmq" { endpoint = substr("%[2]s${terraform_data.broker.id}", 0, length(%[2]q)) }
`, revision, b.Endpoint)+pipelineOf(b, "")+more)
	}
	configure("1", attachmentOf(b))
	if printed := tf.Run(t, "apply", "-auto-approve", "-no-color"); strings.Contains(printed, notCompared) {
		t.Errorf("a creation warns:\n%s", printed)
	}
	configure("2", "")
	printed := tf.Run(t, "apply", "-auto-approve", "-no-color")
	if strings.Count(printed, notCompared) != 1 || strings.Count(printed, dropped) != 1 {
		t.Errorf("not each warning once:\n%s", printed)
	}
}

// A saved plan of a destroy does not know which owners have released the queue since.
func TestAcc_SavedDestroySaysWhatItLetsGo(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.WithQueues(t, "work")
	owner, attacher := acctest.NewCLI(t, acctest.Times()), acctest.NewCLI(t, acctest.Times())
	const both = "work_queues = { work = {} }"
	apply := func(tf *terraformtest.CLI, config string) {
		tf.Write(t, "main.tf", required+config)
		tf.Run(t, "apply", "-auto-approve", "-no-color")
	}
	apply(owner, pipelineOf(b, both))
	attached := strings.Replace(attachmentOf(b), "rabbitmq_retry_pipeline.orders.name", `"orders"`, 1)
	apply(attacher, attached)
	if printed := attacher.Run(t, "plan", "-destroy", "-out=saved", "-no-color"); strings.Contains(printed, dropped) {
		t.Errorf("the pipeline has the queue, too:\n%s", printed)
	}
	apply(owner, pipelineOf(b, ""))
	if printed := attacher.Run(t, "apply", "-no-color", "saved"); strings.Count(printed, dropped) != 1 {
		t.Errorf("the apply of the saved plan is silent:\n%s", printed)
	}
	apply(attacher, attached)
	printed := attacher.Run(t, "destroy", "-auto-approve", "-no-color")
	if strings.Count(printed, "Rejected messages will be dropped") != 1 || strings.Count(printed, dropped) != 1 {
		t.Errorf("plan and apply of the destroy do not warn once each:\n%s", printed)
	}
}

// Each provider block has its own process, which does not know the other's plans.
func TestAcc_OwnersInTwoProcessesReleaseAQueue(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.WithQueues(t, "work")
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	aliased := required + `
provider "rabbitmq" { alias = "second" }
`
	attachment := strings.Replace(attachmentOf(b), "queue    =", "provider = rabbitmq.second\n  queue    =", 1)
	for range 3 {
		tf.Write(t, "main.tf", aliased+pipelineOf(b, "work_queues = { work = {} }")+attachment)
		if printed := tf.Run(t, "apply", "-auto-approve", "-no-color"); strings.Contains(printed, dropped) {
			t.Errorf("an attachment warns:\n%s", printed)
		}
		tf.Write(t, "main.tf", aliased+pipelineOf(b, ""))
		if printed := tf.Run(t, "apply", "-auto-approve", "-no-color"); !strings.Contains(printed, dropped) {
			t.Errorf("the release is silent:\n%s", printed)
		}
	}
}

const required = terraformtest.Required

func pipelineOf(b *brokertest.Broker, more string) string {
	return fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  vhost  = %q
  delays = ["1s"]
  %s
}
`, b.Vhost, more)
}

func attachmentOf(b *brokertest.Broker) string {
	return fmt.Sprintf(`
resource "rabbitmq_retry_attachment" "work" {
  pipeline = rabbitmq_retry_pipeline.orders.name
  vhost    = %q
  queue    = "work"
}
`, b.Vhost)
}

// A plan that creates the vhost itself does not warn that it is missing, and another plan warns once. A plan that deletes the bindings of
// a delayed exchange does not say that its destroy fails.
func TestAccEveryRelease_WarningsThatAPlanMakesUntrue(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	tf := acctest.NewCLI(t, acctest.Quick())
	missing := func(vhost string) int {
		config := required
		for _, name := range []string{"one", "two"} {
			config += fmt.Sprintf("resource \"rabbitmq_delayed_exchange\" %[1]q {\n  name = %[1]q\n  vhost = %[2]s\n"+
				"  max_delay = \"1s\"\n  precision = \"1s\"\n}\n", name, vhost)
		}
		tf.Write(t, "main.tf", config+fmt.Sprintf(`
resource "rabbitmq_vhost" "new" { name = "%[1]s.new" }
resource "rabbitmq_binding" "one" {
  vhost            = rabbitmq_vhost.new.name
  source           = rabbitmq_delayed_exchange.one.deliver_exchange
  destination      = "amq.fanout"
  destination_type = "exchange"
}
`, b.Vhost))
		printed := tf.Run(t, "plan", "-no-color")
		return strings.Count(printed, "Vhost does not exist yet") + strings.Count(printed, "similar warning")
	}
	if n := missing(fmt.Sprintf("%q", b.Vhost+".other")); n != 1 {
		t.Errorf("a vhost that nothing creates is missed %d times", n)
	}
	if n := missing("rabbitmq_vhost.new.name"); n != 0 {
		t.Errorf("a vhost that the plan creates is missed %d times", n)
	}
	tf.Run(t, "apply", "-auto-approve", "-no-color")
	_, warnings, _ := strings.Cut(tf.Run(t, "plan", "-destroy", "-no-color"), "Plan: ")
	printed := strings.Join(strings.Fields(warnings), " ")
	if !strings.Contains(printed, `If these bindings from "one.deliver", which routes due messages, are still there, the destroy fails`) {
		t.Errorf("the destroy deletes the binding:\n%s", printed)
	}
	tf.Run(t, "destroy", "-auto-approve", "-no-color")
}
