package retrypipeline_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

const (
	resourceType = "rabbitmq_retry_pipeline"
	address      = resourceType + ".orders"
)

// accept runs the steps against the provider in this process. The pipelines are destroyed at the
// end, and nothing but the test's own queues may be left in the vhost.
func accept(t *testing.T, b *brokertest.Broker, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunAndCheck(t, acctest.Times(), func() error { return nothingLeft(t, b) }, steps...)
}

// acceptQuickly is accept for steps in which no message is on its way: see [acctest.Quick].
func acceptQuickly(t *testing.T, b *brokertest.Broker, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunAndCheck(t, acctest.Quick(), func() error { return nothingLeft(t, b) }, steps...)
}

// acceptTerraform is acceptQuickly with Terraform's CLI: see [acctest.RunTerraform].
func acceptTerraform(t *testing.T, b *brokertest.Broker, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunTerraformAndCheck(t, acctest.Quick(), func() error { return nothingLeft(t, b) }, steps...)
}

func nothingLeft(t *testing.T, b *brokertest.Broker) error {
	t.Helper()
	var left []string
	for _, kind := range []string{"exchanges", "policies"} {
		for _, name := range acctest.Names(t, b, kind) {
			if name != "" && name != "org" && !strings.HasPrefix(name, "amq.") {
				left = append(left, kind+" "+name)
			}
		}
	}
	for _, name := range acctest.Names(t, b, "queues") {
		if !strings.HasPrefix(name, "work") {
			left = append(left, "queue "+name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind after destroy: %s", strings.Join(left, ", "))
	}
	return nil
}

// pipeline is a configuration of one pipeline named "orders" with these more lines.
func pipelineHCL(b *brokertest.Broker, lines ...string) string {
	return fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"orders\" {\n  name = \"orders\"\n  vhost = %q\n  %s\n}\n",
		b.Vhost, strings.Join(lines, "\n  "))
}

// importID is the id that terraform import takes.
func importID(vhost, name string) string { return url.PathEscape(vhost) + "/" + url.PathEscape(name) }

// emptyInbox waits until the inbox has this many messages, and purges it.
func emptyInbox(t *testing.T, b *brokertest.Broker, want int) {
	t.Helper()
	const inbox = "orders.inbox"
	ch := b.Channel(t)
	brokertest.Eventually(t, func() error {
		q, err := ch.QueueDeclarePassive(inbox, true, false, false, false, nil)
		if err == nil && q.Messages != want {
			err = fmt.Errorf("%s has %d messages instead of %d", inbox, q.Messages, want)
		}
		return err
	})
	if _, err := ch.QueuePurge(inbox, false); err != nil {
		t.Fatal(err)
	}
}

// eventuallyPolicy waits until the broker says that a policy applies to a queue, which it does late.
func eventuallyPolicy(t *testing.T, b *brokertest.Broker, queue, policy string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var found struct {
			Policy string `json:"policy"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &found)
		if found.Policy != policy {
			return fmt.Errorf("policy %q applies to %s instead of %q", found.Policy, queue, policy)
		}
		return nil
	})
}

// eventuallyReported waits until the management API reports this many messages in a queue.
func eventuallyReported(t *testing.T, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var found struct {
			Messages int `json:"messages"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &found)
		if found.Messages != want {
			return fmt.Errorf("%d messages in %s instead of %d", found.Messages, queue, want)
		}
		return nil
	})
}
