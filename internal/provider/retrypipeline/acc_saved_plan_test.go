package retrypipeline_test

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// saved is the saved plan.
var saved = []string{"saved"}

// wait publishes a message that waits in a retry queue, and returns when the broker has counted this many messages.
func (tf *cli) wait(t *testing.T, delay, body string, count int) {
	t.Helper()
	tf.Publish(t, "orders.retry", "k", amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: []byte(body), Headers: amqp.Table{"CC": []any{"delay:" + delay}},
	})
	if count > 0 {
		acctest.AwaitCount(t, tf.Broker, "orders.retry."+delay, count)
	}
}

// The counts of a retired queue change without any change in plans, even if an output has all attributes. A queue that was
// empty at the plan and has messages at the apply stays.
func messageArrivesInRetiredQueue(t *testing.T, tf *cli) {
	t.Helper()
	output := "output \"retired\" { value = rabbitmq_retry_pipeline.orders.retired_queues }\n"
	tf.applied(t, output+pipelineHCL(tf.Broker, `delays = ["1h", "2h"]`))
	tf.wait(t, "2h", "first", 1)
	tf.applied(t, output+pipelineHCL(tf.Broker, `delays = ["1h"]`))
	tf.settled(t)
	tf.wait(t, "2h", "second", 2)
	tf.settled(t)
	for _, body := range []string{"first", "second"} {
		takes(t, tf.Broker, "orders.retry.2h", body)
	}
	acctest.AwaitCount(t, tf.Broker, "orders.retry.2h", 0)
	tf.planned(t, pipelineHCL(tf.Broker, `delays = ["1h"]`))
	tf.wait(t, "2h", "late", 0)
	mentions(t, tf.apply(t, saved...), "Queues are kept")
	acctest.AwaitCount(t, tf.Broker, "orders.retry.2h", 1)
	tf.settled(t)
	takes(t, tf.Broker, "orders.retry.2h", "late")
	acctest.AwaitCount(t, tf.Broker, "orders.retry.2h", 0)
	tf.plan(t)
	tf.apply(t, saved...)
	tf.settled(t)
	there(t, tf.Broker, false, "queues", "orders.retry.2h")
}

func policyAppearsBeforeCreate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.planned(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = {} }`))
	putPolicy(t, tf.Broker, "policies", "org", "^work", 1, map[string]any{"delivery-limit": 9})
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "Keys of another policy would no longer apply", `"delivery-limit" = 9`)
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`))
	tf.settled(t)
}

func policyChangesBeforeUpdate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	putPolicy(t, tf.Broker, "policies", "org", "^work", 1, map[string]any{"delivery-limit": 9})
	keeping := `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, keeping))

	tf.planned(t, pipelineHCL(tf.Broker, `delays = ["5s", "9s"]`, keeping, `policy_priority = 7`))
	putPolicy(t, tf.Broker, "policies", "org", "^work", 1, map[string]any{"delivery-limit": 8, "queue-leader-locator": "balanced"})
	tf.apply(t, saved...)
	tf.settled(t)

	tf.planned(t, pipelineHCL(tf.Broker, `delays = ["5s", "9s", "10s"]`, keeping, `policy_priority = 7`))
	putPolicy(t, tf.Broker, "policies", "org", "^work", 2000, map[string]any{"delivery-limit": 8})
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "A higher-priority policy overrides the pipeline's", "policy_priority = 2001")
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
	deleted("policies", "org")(t, tf.Broker)
	tf.plan(t)
	tf.apply(t, saved...)
	tf.settled(t)
}

func workQueueChangesBeforeCreate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.planned(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = { dead_letter_strategy = "at-least-once" } }`))
	deleted("queues", "work")(t, tf.Broker)
	empty := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "Work queues do not exist", "work")
	require.NoError(t, empty.RequireSame(acctest.List(t, tf.Broker)))
	tf.DeclareQueue(t, "work", "classic", nil)
	tf.refuses(t, nil, "Work queue has another type", `"work" = { type = "classic" }`)
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = { type = "classic" } }`))
	tf.settled(t)
}

func objectAppearsBeforeCreate(t *testing.T, tf *cli) {
	t.Helper()
	tf.planned(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.DeclareQueue(t, "orders.failed", "classic", nil)
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "Objects exist already", `queue "orders.failed"`, "import")
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
	deleted("queues", "orders.failed")(t, tf.Broker)
	tf.apply(t)
	tf.settled(t)
}

func objectsGoBeforeUpdate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = {} }`))
	tf.planned(t, pipelineHCL(tf.Broker, `delays = ["5s", "9s"]`, `work_queues = { work = {} }`))
	deleted("queues", "orders.inbox")(t, tf.Broker)
	deleted("exchanges", "orders.return")(t, tf.Broker)
	deleted("policies", "retry/orders/queues")(t, tf.Broker)
	tf.apply(t, saved...)
	tf.settled(t)
}

func messageArrivesBeforeRename(t *testing.T, tf *cli) {
	t.Helper()
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	renamed := pipelineLabelled(tf.Broker, "orders", "bills", `delays = ["5s"]`)
	tf.planned(t, renamed)
	tf.Publish(t, "orders.failed", "k", persistent("parked"))
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "would lose messages", "orders.failed: 1 message")
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
	takes(t, tf.Broker, "orders.failed", "parked")
	mentions(t, tf.plan(t), "must be replaced")
	tf.apply(t, saved...)
	tf.settled(t)
	there(t, tf.Broker, false, "exchanges", "orders.dlx")
}

func driftIsRepairedByHand(t *testing.T, tf *cli) {
	t.Helper()
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	unbound("orders.retry", "orders.retry.5s")(t, tf.Broker)
	tf.plan(t)
	bound("orders.retry", "orders.retry.5s", "delay:5s", nil)(t, tf.Broker)
	before := acctest.List(t, tf.Broker)
	tf.apply(t, saved...)
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
	tf.settled(t)
}

// The settings of queues that stay move between the shared policy and separate policies.
func queuesLeaveAndJoin(t *testing.T, tf *cli) {
	t.Helper()
	for _, queue := range []string{"work.a", "work.b", "work.c"} {
		tf.DeclareQueue(t, queue, "quorum", nil)
	}
	limited := `{ dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ "max-length" = 9, "overflow" = "drop-head" }) }`
	for _, lines := range [][]string{
		{`work_queues = { "work.a" = {}, "work.b" = {}, "work.c" = ` + limited + ` }`},
		{`work_queues = { "work.a" = {}, "work.b" = ` + limited + `, "work.c" = ` + limited + ` }`},
		{`work_queues = { "work.b" = ` + limited + `, "work.d" = { declare = true, attach = "arguments" } }`, `policy_priority = 30`},
		{`work_queues = { "work.b" = {}, "work.d" = { attach = "arguments" } }`},
	} {
		tf.planned(t, pipelineHCL(tf.Broker, append(lines, `delays = ["5s"]`)...))
		tf.DeclareQueue(t, "work.unrelated", "classic", nil)
		tf.apply(t, saved...)
		tf.settled(t)
	}
}

// keyed is a pipeline in a resource with for_each, under this key.
func keyed(b *brokertest.Broker, key string) string {
	return pipelineLabelled(b, "all", "orders", fmt.Sprintf("for_each = toset([%q])", key), `delays = ["5s"]`)
}

func pipelineMoves(t *testing.T, tf *cli) {
	t.Helper()
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	before := acctest.List(t, tf.Broker)
	moved := "moved {\n  from = rabbitmq_retry_pipeline.orders\n  to = rabbitmq_retry_pipeline.all[\"a\"]\n}\n"
	again := "moved {\n  from = rabbitmq_retry_pipeline.all[\"a\"]\n  to = rabbitmq_retry_pipeline.all[\"b\"]\n}\n"
	for _, config := range []string{keyed(tf.Broker, "a") + moved, keyed(tf.Broker, "b") + moved + again} {
		tf.planned(t, config)
		tf.apply(t, saved...)
		tf.settled(t)
	}
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
}

// Without a moved block, Terraform would destroy the old pipeline and create the new one at the same time.
func keyChangesWithoutMove(t *testing.T, tf *cli) {
	t.Helper()
	tf.applied(t, keyed(tf.Broker, "a"))
	before := acctest.List(t, tf.Broker)
	tf.configure(t, keyed(tf.Broker, "b"))
	tf.refuses(t, nil, "Pipeline is destroyed and created", "Add a moved block")
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
}

// The new pipeline finds the old one's objects, and adopts none.
func replacementCreatesFirst(t *testing.T, tf *cli) {
	t.Helper()
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `lifecycle { create_before_destroy = true }`))
	before := acctest.List(t, tf.Broker)
	tf.plan(t, "-replace="+address)
	tf.refuses(t, saved, "Objects exist already")
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
	tf.settled(t)
}

// The new pipeline finds that the work queue has an owner. The old pipeline stays unchanged, both in the state and on the
// broker.
func forcedReplacementCreatesFirst(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	lines := []string{`delays = ["5s"]`, `work_queues = { work = {} }`, `force_destroy = true`}
	first := `lifecycle { create_before_destroy = true }`
	renamed := func(lines ...string) string {
		return pipelineLabelled(tf.Broker, "orders", "renamed", lines...)
	}
	tf.applied(t, pipelineHCL(tf.Broker, append(lines, first)...))
	before := acctest.List(t, tf.Broker)
	mentions(t, tf.planned(t, renamed(append(lines, first)...)), `Each work queue then needs take_over_from = "orders"`)
	tf.refuses(t, saved, "Queue of another pipeline", `take_over_from = "orders"`)
	require.NoError(t, before.RequireSame(acctest.List(t, tf.Broker)))
	tf.configure(t, pipelineHCL(tf.Broker, append(lines, first)...))
	tf.settled(t)
	tf.configure(t, renamed(lines[:2]...))
	tf.refuses(t, nil, "A pipeline with work queues would be replaced")
	tf.applied(t, renamed(lines...))
	tf.settled(t)
	tf.applied(t, pipelineHCL(tf.Broker, lines[0], lines[2], first, `work_queues = { work = { take_over_from = "renamed" } }`))
	tf.settled(t)
	awaitReported(t, tf.Broker, "work", "policy", "retry/orders/queue/work")
}

// If a pipeline of another state took over a queue at-most-once, its pending dead letters would be deleted. So the apply
// refuses, with a remedy. At-least-once, they stay or go to the new pipeline.
func takenOverWhileDeadLettersPend(t *testing.T, tf *cli) {
	t.Helper()
	const messages = 3
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = {} }`))
	holdDeadLetters(t, tf.Broker, "work", messages)

	other := tf.beside(t)
	takesOver := func(more string) string {
		return pipelineNamed(tf.Broker, "new", `work_queues = { work = { take_over_from = "orders"`+more+` } }`)
	}
	other.configure(t, takesOver(`, dead_letter_strategy = "at-most-once"`))
	other.refuses(t, nil, "would lose messages", "work: 3 dead letters", "leads to a queue that accepts them", `dead_letter_strategy = "at-least-once"`)
	other.applied(t, takesOver(""))
	ch := tf.Channel(t)
	brokertest.Eventually(t, func() error {
		inbox, err := ch.QueueDeclarePassive("new.inbox", true, false, false, false, nil)
		if held, _ := reported(t, tf.Broker, "work")["messages_dlx"].(float64); err == nil && int(held)+inbox.Messages != messages {
			err = fmt.Errorf("%.0f dead letters are held, and %d are in the inbox", held, inbox.Messages)
		}
		return err
	})
}
