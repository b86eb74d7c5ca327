package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

const replaceable = terraformtest.Required + `
resource "terraform_data" "revision" { input = "REVISION" }
resource "rabbitmq_retry_pipeline" "it" {
  name          = "orders"
  vhost         = "VHOST"
  delays        = ["1s"]
  max_age       = terraform_data.revision.output
  work_queues   = { work = {} }
  force_destroy = FORCE
  lifecycle { replace_triggered_by = [terraform_data.revision] }
}
resource "rabbitmq_retry_pipeline" "shared" {
  name   = "shared"
  vhost  = "VHOST"
  delays = ["1s"]
}
resource "rabbitmq_retry_attachment" "it" {
  pipeline = rabbitmq_retry_pipeline.shared.name
  vhost    = "VHOST"
  queue    = "attached"
  lifecycle { replace_triggered_by = [terraform_data.revision] }
}
resource "rabbitmq_delayed_exchange" "it" {
  name          = "events"
  vhost         = "VHOST"
  max_delay     = "1s"
  precision     = "1s"
  force_destroy = FORCE
  lifecycle { replace_triggered_by = [terraform_data.revision] }
}
`

// Terraform plans a forced replacement as a creation, and shows only errors of that plan.
func TestAcc_ForcedReplacements(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	tf := acctest.NewCLI(t, acctest.Times())
	configure := func(revision string, force bool) {
		tf.Write(t, "main.tf", strings.NewReplacer("VHOST", b.Vhost, "REVISION", revision, "FORCE", fmt.Sprint(force)).Replace(replaceable))
	}
	b.DeclareQueue(t, "work", "quorum", nil)
	b.DeclareQueue(t, "attached", "quorum", nil)
	b.DeclareQueue(t, "due", "quorum", nil)
	configure("1h", false)
	tf.Run(t, "apply", "-auto-approve", "-no-color")
	b.Call(t, http.MethodPost, b.Path("bindings", "e", "events.deliver", "q", "due"), map[string]any{"routing_key": "#"}, nil)

	addresses := map[string]string{
		"rabbitmq_retry_pipeline.it": "work", "rabbitmq_retry_attachment.it": "attached", "rabbitmq_delayed_exchange.it": "events.deliver -> due",
	}
	refused := func(what string, lists []string, args ...string) {
		t.Helper()
		output, err := tf.Try(t.Context(), append(args, "-no-color")...)
		if err == nil {
			t.Errorf("%s: planned:\n%s", what, output)
			return
		}
		said := inOneLine(err.Error())
		for _, want := range append(lists, "exists and is in use", "terraform untaint", "moved block", "-refresh=false") {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is not said:\n%s", what, want, said)
			}
		}
	}
	for address, lost := range addresses {
		refused(address+" -replace", []string{lost}, "plan", "-replace="+address)
		tf.Run(t, "taint", address)
		refused(address+" tainted", []string{lost}, "plan")
		refused(address+" tainted, destroyed", []string{lost}, "plan", "-destroy")
		tf.Run(t, "plan", "-destroy", "-refresh=false")
		tf.Run(t, "untaint", address)
	}
	configure("2h", false) // it makes max_age unknown
	refused("replace_triggered_by", []string{"work", "attached", "events.deliver -> due"}, "plan")
	configure("1h", false)
	if output := tf.Run(t, "plan", "-no-color"); !strings.Contains(output, "No changes.") {
		t.Errorf("untainted: %s", output)
	}
	configure("1h", true)
	tf.Run(t, "apply", "-auto-approve", "-no-color")
	tf.Run(t, "plan", "-replace=rabbitmq_retry_pipeline.it", "-replace=rabbitmq_delayed_exchange.it")

	configure("1h", false)
	tf.Run(t, "apply", "-auto-approve", "-no-color")
	tf.Run(t, "taint", "rabbitmq_retry_pipeline.it")
	tf.Run(t, "destroy", "-auto-approve", "-refresh=false", "-target=rabbitmq_retry_pipeline.it")
}

// If a creation of existing objects could lose messages, the plan fails.
func TestAcc_CreationOfWhatIsInUse(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.WithQueues(t, "work", "due")
	core := func(kind string, config map[string]any) acctest.Core {
		config["vhost"] = b.Vhost
		return acctest.Core{Type: "rabbitmq_" + kind, Config: config, Times: acctest.Quick()}
	}
	pipeline := func(more map[string]any) acctest.Core {
		config := map[string]any{"name": "orders", "delays": []string{"1s"}}
		maps.Copy(config, more)
		return core("retry_pipeline", config)
	}
	events := func() acctest.Core {
		return core("delayed_exchange", map[string]any{"name": "events", "max_delay": "1s", "precision": "1s"})
	}
	work := map[string]any{"work_queues": map[string]any{"work": map[string]any{}}}
	check := func(c acctest.Core, refusedFor string) error {
		_, err := c.Plan(t.Context())
		if refusedFor == "" {
			return err
		}
		if err == nil || !strings.Contains(err.Error(), "exists and is in use") || !strings.Contains(err.Error(), refusedFor) {
			return fmt.Errorf("%v, want %q", err, refusedFor) //nolint:errorlint // it may be nil
		}
		return nil
	}
	planned := func(what string, c acctest.Core, refusedFor string) {
		t.Helper()
		require.NoError(t, check(c, refusedFor), what)
	}

	made, delays := pipeline(nil), events()
	made.MustApply(t)
	delays.MustApply(t)
	planned("a pipeline without work queues", pipeline(nil), "")
	planned("a delayed exchange without bindings", events(), "")

	attached := core("retry_attachment", map[string]any{"pipeline": "orders", "queue": "work"})
	attached.MustApply(t)
	planned("an attachment", core("retry_attachment", map[string]any{"pipeline": "orders", "queue": "work"}), "work")
	planned("an attachment of another queue", core("retry_attachment", map[string]any{"pipeline": "orders", "queue": "due"}), "")
	planned("a pipeline with an attachment", pipeline(nil), "work")
	require.NoError(t, attached.Destroy(t.Context()))
	planned("a pipeline without attachments", pipeline(nil), "")

	made.Config = pipeline(work).Config
	made.MustApply(t)
	planned("a pipeline with a work queue", pipeline(nil), "work")
	planned("the same, forced", pipeline(map[string]any{"force_destroy": true}), "")
	b.Call(t, http.MethodDelete, b.Path("queues", "orders.failed"), nil, nil)
	planned("a pipeline whose definition is gone", pipeline(nil), "work")

	b.Publish(t, "events.delay.unrouted", "key", amqp.Publishing{DeliveryMode: amqp.Persistent})
	brokertest.Eventually(t, func() error { return check(events(), "events.delay.unrouted: 1 message") })
}
