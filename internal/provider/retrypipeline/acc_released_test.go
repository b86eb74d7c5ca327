package retrypipeline_test

import (
	"net/http"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// A queue that the user has released keeps the argument by which the pipeline declared it. Whatever happens to the
// state afterwards, it is the user's.
func TestAcc_ReleasedQueueIsNeverDeleted(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t, terraformtest.Settings(t, terraformtest.BuildProvider(t)))
	for _, workQueues := range []string{`work_queues = { "work" = { declare = true } }`, `work_queues = { "work" = { declare = false } }`} {
		tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, workQueues))
		tf.apply(t)
	}
	if output, code := tf.run(t, "state", "rm", address); code != 0 {
		t.Fatal(output)
	}
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	if output, code := tf.run(t, "import", "-input=false", address, importID(tf.Vhost, "orders")); code != 0 {
		t.Fatal(output)
	}
	tf.apply(t)
	tf.settled(t)
	if status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "work"), nil); status != http.StatusOK {
		t.Errorf("the queue that was released is gone: %d", status)
	}
}
