package retrypipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// keyed is a pipeline that is one of several by a key of Terraform's.
func keyed(b *brokertest.Broker, key string) string {
	return fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"all\" {\n  for_each = toset([%q])\n  name = \"orders\"\n  vhost = %q\n  delays = [\"5s\"]\n}\n", key, b.Vhost)
}

func pipelineMoves(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.apply(t)
	before := acctest.List(t, tf.Broker)
	moved := "moved {\n  from = rabbitmq_retry_pipeline.orders\n  to = rabbitmq_retry_pipeline.all[\"a\"]\n}\n"
	again := "moved {\n  from = rabbitmq_retry_pipeline.all[\"a\"]\n  to = rabbitmq_retry_pipeline.all[\"b\"]\n}\n"
	for _, config := range []string{keyed(tf.Broker, "a") + moved, keyed(tf.Broker, "b") + moved + again} {
		tf.configure(t, config)
		tf.plan(t)
		tf.apply(t, saved...)
		tf.settled(t)
	}
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
}

// Without a moved block, Terraform destroys the one and creates the other side by side. The new one
// adopts nothing; it is made by the next apply.
func keyChangesWithoutMove(t *testing.T, tf *cli) {
	t.Helper()
	empty := acctest.List(t, tf.Broker)
	tf.configure(t, keyed(tf.Broker, "a"))
	tf.apply(t)
	tf.configure(t, keyed(tf.Broker, "b"))
	if printed := tf.plan(t); !strings.Contains(printed, "Objects exist already") || !strings.Contains(printed, "write a moved block") {
		t.Errorf("the plan does not warn:\n%s", printed)
	}
	tf.refuses(t, saved, "Objects exist already", "import", "write a moved block")
	if err := empty.RequireSame(acctest.List(t, tf.Broker)); err != nil {
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
	before := acctest.List(t, tf.Broker)
	tf.plan(t, "-replace="+address)
	tf.refuses(t, saved, "Objects exist already")
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	tf.settled(t)
}

// The new one finds the work queue taken, and leaves the old one as it was, in the state as well as on the broker.
func forcedReplacementCreatesFirst(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	lines := []string{`delays = ["5s"]`, `work_queues = { work = {} }`, `force_destroy = true`}
	first := `lifecycle { create_before_destroy = true }`
	renamed := func(lines ...string) string {
		return strings.Replace(pipelineHCL(tf.Broker, lines...), `name = "orders"`, `name = "renamed"`, 1)
	}
	tf.configure(t, pipelineHCL(tf.Broker, append(lines, first)...))
	tf.apply(t)
	before := acctest.List(t, tf.Broker)
	tf.configure(t, renamed(append(lines, first)...))
	if printed := tf.plan(t); !strings.Contains(printed, `each work queue needs take_over_from = "orders"`) {
		t.Errorf("the plan does not warn:\n%s", printed)
	}
	tf.refuses(t, saved, "Queue of another pipeline", `take_over_from = "orders"`)
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	tf.configure(t, pipelineHCL(tf.Broker, append(lines, first)...))
	tf.settled(t)
	tf.configure(t, renamed(lines[:2]...))
	tf.refuses(t, nil, "A pipeline with work queues would be replaced")
	tf.configure(t, renamed(lines...))
	tf.apply(t)
	tf.settled(t)
	tf.configure(t, pipelineHCL(tf.Broker, lines[0], lines[2], first, `work_queues = { work = { take_over_from = "renamed" } }`))
	tf.apply(t)
	tf.settled(t)
	eventuallyPolicy(t, tf.Broker, "work", "retry/orders/queue/work")
}

// A pipeline of another state that takes a queue over at-most-once would delete its pending dead letters: it is refused
// with what to do about them. At-least-once, they stay, or go to it.
func takenOverWhileDeadLettersPend(t *testing.T, tf *cli) {
	t.Helper()
	const messages = 3
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = {} }`))
	tf.apply(t)
	holdDeadLetters(t, tf.Broker, "work", messages)

	other := tf.beside(t)
	takesOver := func(more string) string {
		return pipelineNamed(tf.Broker, "new", `work_queues = { work = { take_over_from = "orders"`+more+` } }`)
	}
	other.configure(t, takesOver(`, dead_letter_strategy = "at-most-once"`))
	other.refuses(t, nil, "would lose messages", "work: 3 dead letters", "leads to a queue that accepts them", `dead_letter_strategy = "at-least-once"`)
	other.configure(t, takesOver(""))
	other.apply(t)
	ch := tf.Channel(t)
	brokertest.Eventually(t, func() error {
		inbox, err := ch.QueueDeclarePassive("new.inbox", true, false, false, false, nil)
		if held := reported(t, tf.Broker, "work", "messages_dlx"); err == nil && held+inbox.Messages != messages {
			err = fmt.Errorf("%d dead letters are held, and %d are in the inbox", held, inbox.Messages)
		}
		return err
	})
}
