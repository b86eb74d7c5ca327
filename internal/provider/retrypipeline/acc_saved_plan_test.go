package retrypipeline_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// saved is the plan that was saved.
var saved = []string{"saved"}

// wait publishes a message that waits in a retry queue, and returns when the broker counts this many.
func (tf *cli) wait(t *testing.T, delay, body string, count int) {
	t.Helper()
	tf.Publish(t, "orders.retry", "k", amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: []byte(body), Headers: amqp.Table{"CC": []any{"delay:" + delay}},
	})
	if count > 0 {
		acctest.AwaitCount(t, tf.Broker, "orders.retry."+delay, count)
	}
}

// The counts of a retired queue move without a change in any plan, also where all of it is an output;
// one that was empty at the plan and is not at the apply stays.
func messageArrivesInRetiredQueue(t *testing.T, tf *cli) {
	t.Helper()
	output := "output \"retired\" { value = rabbitmq_retry_pipeline.orders.retired_queues }\n"
	tf.configure(t, output+pipelineHCL(tf.Broker, `delays = ["1h", "2h"]`))
	tf.apply(t)
	tf.wait(t, "2h", "first", 1)
	tf.configure(t, output+pipelineHCL(tf.Broker, `delays = ["1h"]`))
	tf.apply(t)
	tf.settled(t)
	tf.wait(t, "2h", "second", 2)
	tf.settled(t)
	for _, body := range []string{"first", "second"} {
		require.NoError(t, arrived(t, tf.Broker, "orders.retry.2h", body))
	}
	acctest.AwaitCount(t, tf.Broker, "orders.retry.2h", 0)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["1h"]`))
	tf.plan(t)
	tf.wait(t, "2h", "late", 0)
	if printed := tf.apply(t, saved...); !strings.Contains(printed, "Queues are kept") {
		t.Errorf("nobody is told that the queue is kept:\n%s", printed)
	}
	acctest.AwaitCount(t, tf.Broker, "orders.retry.2h", 1)
	tf.settled(t)
	if err := arrived(t, tf.Broker, "orders.retry.2h", "late"); err != nil {
		t.Error(err)
	}
	acctest.AwaitCount(t, tf.Broker, "orders.retry.2h", 0)
	tf.plan(t)
	tf.apply(t, saved...)
	tf.settled(t)
	if slices.Contains(acctest.Names(t, tf.Broker, "queues"), "orders.retry.2h") {
		t.Error("the drained queue is still there")
	}
}

func (tf *cli) putPolicy(t *testing.T, priority int, definition map[string]any) {
	t.Helper()
	tf.Call(t, http.MethodPut, tf.Path("policies", "org"), map[string]any{
		"pattern": "^work", "apply-to": "queues", "priority": priority, "definition": definition,
	}, nil)
}

func policyAppearsBeforeCreate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = {} }`))
	tf.plan(t)
	tf.putPolicy(t, 1, map[string]any{"delivery-limit": 9})
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "Keys of another policy would no longer apply", `"delivery-limit" = 9`)
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`))
	tf.apply(t)
	tf.settled(t)
}

func policyChangesBeforeUpdate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.putPolicy(t, 1, map[string]any{"delivery-limit": 9})
	keeping := `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, keeping))
	tf.apply(t)

	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s", "9s"]`, keeping, `policy_priority = 7`))
	tf.plan(t)
	tf.putPolicy(t, 1, map[string]any{"delivery-limit": 8, "queue-leader-locator": "balanced"})
	tf.apply(t, saved...)
	tf.settled(t)

	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s", "9s", "10s"]`, keeping, `policy_priority = 7`))
	tf.plan(t)
	tf.putPolicy(t, 2000, map[string]any{"delivery-limit": 8})
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "A higher-priority policy overrides the pipeline's", "policy_priority = 2001")
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	deleted("policies", "org")(t, tf.Broker)
	tf.plan(t)
	tf.apply(t, saved...)
	tf.settled(t)
}

func workQueueChangesBeforeCreate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = { dead_letter_strategy = "at-least-once" } }`))
	tf.plan(t)
	deleted("queues", "work")(t, tf.Broker)
	empty := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "Work queues do not exist", "work")
	if err := empty.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	tf.DeclareQueue(t, "work", "classic", nil)
	tf.refuses(t, nil, "Work queue has another type", `"work" = { type = "classic" }`)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = { type = "classic" } }`))
	tf.apply(t)
	tf.settled(t)
}

func objectAppearsBeforeCreate(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.plan(t)
	tf.DeclareQueue(t, "orders.failed", "classic", nil)
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "Objects exist already", `queue "orders.failed"`, "import")
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	deleted("queues", "orders.failed")(t, tf.Broker)
	tf.apply(t)
	tf.settled(t)
}

func objectsGoBeforeUpdate(t *testing.T, tf *cli) {
	t.Helper()
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { work = {} }`))
	tf.apply(t)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s", "9s"]`, `work_queues = { work = {} }`))
	tf.plan(t)
	deleted("queues", "orders.inbox")(t, tf.Broker)
	deleted("exchanges", "orders.return")(t, tf.Broker)
	deleted("policies", "retry/orders/queues")(t, tf.Broker)
	tf.apply(t, saved...)
	tf.settled(t)
}

func messageArrivesBeforeRename(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.apply(t)
	renamed := strings.Replace(pipelineHCL(tf.Broker, `delays = ["5s"]`), `name = "orders"`, `name = "bills"`, 1)
	tf.configure(t, renamed)
	tf.plan(t)
	tf.Publish(t, "orders.failed", "k", persistent("parked"))
	before := acctest.List(t, tf.Broker)
	tf.refuses(t, saved, "would lose messages", "orders.failed: 1 message")
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	if err := arrived(t, tf.Broker, "orders.failed", "parked"); err != nil {
		t.Error(err)
	}
	if printed := tf.plan(t); !strings.Contains(printed, "must be replaced") {
		t.Errorf("the replacement is not proposed again:\n%s", printed)
	}
	tf.apply(t, saved...)
	tf.settled(t)
	if slices.Contains(acctest.Names(t, tf.Broker, "exchanges"), "orders.dlx") {
		t.Error("the old pipeline is still there")
	}
}

func driftIsRepairedByHand(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.apply(t)
	unbound("orders.retry", "orders.retry.5s")(t, tf.Broker)
	tf.plan(t)
	bound("orders.retry", "orders.retry.5s", "delay:5s", nil)(t, tf.Broker)
	before := acctest.List(t, tf.Broker)
	tf.apply(t, saved...)
	if err := before.RequireSame(acctest.List(t, tf.Broker)); err != nil {
		t.Error(err)
	}
	tf.settled(t)
}

// The settings of queues that stay move between the shared policy and policies of their own.
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
		tf.configure(t, pipelineHCL(tf.Broker, append(lines, `delays = ["5s"]`)...))
		tf.plan(t)
		tf.DeclareQueue(t, "work.unrelated", "classic", nil)
		tf.apply(t, saved...)
		tf.settled(t)
	}
}
