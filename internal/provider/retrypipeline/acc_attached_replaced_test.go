package retrypipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// A pipeline to which queues are attached is not destroyed, nor replaced: the plan says so before the apply does.
func TestAcc_PlanOfAReplacedPipelineNamesAttachedQueues(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t, terraformtest.Settings(t, terraformtest.BuildProvider(t)))
	tf.DeclareQueue(t, "attached", "quorum", nil)
	config := pipelineHCL(tf.Broker, `delays = ["5s"]`) + fmt.Sprintf(`
resource "rabbitmq_retry_attachment" "team" {
  pipeline   = "orders"
  vhost      = %q
  queue      = "attached"
  depends_on = [rabbitmq_retry_pipeline.orders]
}
`, tf.Vhost)
	tf.configure(t, config)
	tf.apply(t)
	tf.configure(t, strings.Replace(config, `name = "orders"`, `name = "bills"`, 1))
	if output := tf.plan(t); !strings.Contains(output, "Queues are attached to the pipeline") || !strings.Contains(output, "- attached") {
		t.Errorf("the plan does not say that the apply will fail:\n%s", output)
	}
	if output, code := tf.run(t, "apply", "-input=false", "-auto-approve"); code == 0 || !strings.Contains(output, "Nothing was deleted") {
		t.Errorf("apply: %d\n%s", code, output)
	}
	tf.configure(t, config)
	tf.settled(t) // the refused apply left everything as it was
}
