package retrypipeline_test

import (
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Every plan after whose apply rejected messages are dropped says so, and no other does.
func TestAcc_PlansSayWhatIsDropped(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.DeclareQueue(t, "work by arguments", "quorum", map[string]any{
		"x-dead-letter-exchange": "old.dlx", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	})
	const (
		none = `work_queues = {}`
		has  = `work_queues = { work = {}, "work by arguments" = { attach = "arguments" } }`
		left = `work_queues = { "work by arguments" = { attach = "arguments" } }`
	)
	takes := pipelineNamed(tf.Broker, "new", `work_queues = { work = { take_over_from = "old" } }`)
	plan := func(what, config string, dropped bool, arguments ...string) {
		t.Helper()
		tf.configure(t, config)
		output := tf.plan(t, arguments...)
		if got := strings.Contains(output, "Rejected messages will be dropped"); got != dropped || got && !strings.Contains(output, "write a moved block") {
			t.Errorf("%s: the plan warns: %t\n%s", what, got, output)
		}
		if strings.Contains(output, "attached twice") {
			t.Errorf("%s: the plan takes the queue for one of two owners:\n%s", what, output)
		}
		if strings.Contains(output, "parking-queue") {
			t.Errorf("%s: a queue that was detached is taken for one in which dead letters rest:\n%s", what, output)
		}
		if !dropped && strings.Contains(output, "delivery-limit-default") {
			t.Errorf("%s: a queue of another pipeline is taken for one whose messages nobody gets:\n%s", what, output)
		}
	}

	tf.configure(t, pipelineNamed(tf.Broker, "old", has))
	tf.apply(t)
	plan("a queue is removed", pipelineNamed(tf.Broker, "old", left), true)
	plan("a destroy", pipelineNamed(tf.Broker, "old", has), true, "-destroy")
	plan("both steps of a move", pipelineNamed(tf.Broker, "old", left)+takes, true)
	plan("a move from a pipeline that goes", takes, true)
	attachment := fmt.Sprintf("resource \"rabbitmq_retry_attachment\" \"work\" {\n  pipeline = \"old\"\n  vhost = %q\n  queue = \"work\"\n}\n", tf.Vhost)
	plan("both steps to an attachment", pipelineNamed(tf.Broker, "old", left)+attachment, true)
	plan("an attachment besides", pipelineNamed(tf.Broker, "old", has)+attachment, false)
	later := "resource \"terraform_data\" \"name\" { input = \"other\" }\n"
	tf.configure(t, later+pipelineNamed(tf.Broker, "old", `work_queues = { (terraform_data.name.output) = {} }`))
	if output := tf.plan(t); !strings.Contains(output, "Rejected messages may be dropped") || !strings.Contains(output, "- work ") {
		t.Errorf("work queues that are not known yet: %s", output)
	}
	plan("a take-over", pipelineNamed(tf.Broker, "old", has)+takes, false)
	tf.apply(t)
	plan("the old one lets go", pipelineNamed(tf.Broker, "old", left)+takes, false)
	plan("the new one lets go", pipelineNamed(tf.Broker, "old", has)+pipelineNamed(tf.Broker, "new", none), false)
	plan("both let go", pipelineNamed(tf.Broker, "old", left)+pipelineNamed(tf.Broker, "new", none), true)
	plan("both are destroyed", pipelineNamed(tf.Broker, "old", has)+takes, true, "-destroy")
	tf.configure(t, pipelineNamed(tf.Broker, "old", left)+takes)
	tf.apply(t)
	// As long as a message waits in the old pipeline, the queue that it may come back to stays bound.
	tf.Publish(t, "old.dlx", "work", amqp.Publishing{Body: []byte("waits")})
	acctest.AwaitCount(t, tf.Broker, "old.inbox", 1)
	plan("what was detached", pipelineNamed(tf.Broker, "old", left, `max_age = "1h"`)+takes, false)
	tf.configure(t, pipelineNamed(tf.Broker, "old", none)+takes)
	tf.apply(t)
	plan("a queue dead-letters by its arguments", takes, true)
}
