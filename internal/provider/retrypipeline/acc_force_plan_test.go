package retrypipeline_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// The plan of a destroy says what the destroy does with messages that are left.
func TestAcc_PlanOfADestroySaysWhatForceDeletes(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t, terraformtest.Settings(t, terraformtest.BuildProvider(t)))
	configure := func(force string) {
		tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, "force_destroy = "+force))
		tf.apply(t)
	}
	says := func(words string) {
		t.Helper()
		if output := tf.plan(t, "-destroy"); !strings.Contains(output, "orders.failed: 1 message") || !strings.Contains(output, words) {
			t.Errorf("the plan does not say %q:\n%s", words, output)
		}
	}
	configure("false")
	tf.Publish(t, "orders.failed", "work", amqp.Publishing{DeliveryMode: amqp.Persistent})
	eventuallyReported(t, tf.Broker, "orders.failed", 1)
	says("Nothing is deleted while messages would be lost")
	configure("true")
	says("Destroying the pipeline deletes messages")
}
