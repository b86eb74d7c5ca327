package retrypipeline_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// The plan of a destroy, or of a replacement, says what becomes of messages that are left.
func TestAcc_PlanOfADestroySaysWhatForceDeletes(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
	config := pipelineHCL(tf.Broker, `delays = ["5s"]`, `force_destroy = false`)
	forced := strings.Replace(config, "false", "true", 1)
	says := func(config, words string) {
		t.Helper()
		tf.configure(t, config)
		tf.apply(t)
		plans := []string{tf.plan(t, "-destroy")}
		tf.configure(t, strings.Replace(config, `name = "orders"`, `name = "bills"`, 1))
		for _, output := range append(plans, tf.plan(t)) {
			if !strings.Contains(output, "orders.failed: 1 message") || !strings.Contains(output, words) {
				t.Errorf("the plan does not say %q:\n%s", words, output)
			}
		}
	}
	tf.configure(t, config)
	tf.apply(t)
	tf.Publish(t, "orders.failed", "work", amqp.Publishing{DeliveryMode: amqp.Persistent})
	eventuallyReported(t, tf.Broker, "orders.failed", 1)
	says(config, "Nothing is deleted while messages would be lost")
	says(forced, "Destroying the pipeline deletes messages")
}
