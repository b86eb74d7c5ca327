package retrypipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// A pipeline to which queues are attached is not replaced. Created first, the old one could not be destroyed.
func TestAcc_PipelineWithAttachedQueuesIsNotReplaced(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
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
	tf.refuses(t, nil, "A pipeline with attached queues would be replaced", "- attached")
	tf.configure(t, config)
	tf.settled(t)
}
