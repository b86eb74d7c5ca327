package retrypipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// keyed is a pipeline that is one of several by a key of Terraform's.
func keyed(b *brokertest.Broker, key string) string {
	return fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"all\" {\n  for_each = toset([%q])\n  name = \"orders\"\n  vhost = %q\n  delays = [\"5s\"]\n}\n", key, b.Vhost)
}

func pipelineMoves(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.apply(t)
	before := list(t, tf.Broker)
	moved := "moved {\n  from = rabbitmq_retry_pipeline.orders\n  to = rabbitmq_retry_pipeline.all[\"a\"]\n}\n"
	again := "moved {\n  from = rabbitmq_retry_pipeline.all[\"a\"]\n  to = rabbitmq_retry_pipeline.all[\"b\"]\n}\n"
	for _, config := range []string{keyed(tf.Broker, "a") + moved, keyed(tf.Broker, "b") + moved + again} {
		tf.configure(t, config)
		tf.plan(t)
		tf.apply(t, saved...)
		tf.settled(t)
	}
	if err := before.requireSame(list(t, tf.Broker)); err != nil {
		t.Error(err)
	}
}

// Without a moved block, Terraform destroys the one and creates the other side by side. The new one
// adopts nothing; it is made by the next apply.
func keyChangesWithoutMove(t *testing.T, tf *cli) {
	t.Helper()
	empty := list(t, tf.Broker)
	tf.configure(t, keyed(tf.Broker, "a"))
	tf.apply(t)
	tf.configure(t, keyed(tf.Broker, "b"))
	if printed := tf.plan(t); !strings.Contains(printed, "Objects exist already") {
		t.Errorf("the plan does not warn:\n%s", printed)
	}
	tf.refuses(t, saved, "Objects exist already", "import")
	if err := empty.requireSame(list(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	tf.apply(t)
	tf.settled(t)
}

// The new one finds the objects of the old one, and adopts nothing.
func replacementCreatesFirst(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `lifecycle { create_before_destroy = true }`))
	tf.apply(t)
	before := list(t, tf.Broker)
	tf.plan(t, "-replace="+address)
	tf.refuses(t, saved, "Objects exist already")
	if err := before.requireSame(list(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	tf.settled(t)
}
