package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// A plan warns exactly if rejected messages are lost after its apply.
func TestAcc_PlansSayWhatIsDropped(t *testing.T) {
	t.Parallel()
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
	old := func(lines ...string) string { return pipelineNamed(tf.Broker, "old", lines...) }
	taker := pipelineNamed(tf.Broker, "new", `work_queues = { work = { take_over_from = "old" } }`)
	plan := func(what, config string, dropped bool, arguments ...string) {
		t.Helper()
		output := tf.planned(t, config, arguments...)
		if got := strings.Contains(output, "Rejected messages will be dropped"); got != dropped || got && !strings.Contains(output, "write a moved block") {
			t.Errorf("%s: the plan warns: %t\n%s", what, got, output)
		}
		// No warning appears about a queue with two owners, or about dead letters in a detached queue.
		omits(t, output, "attached twice", "parking-queue")
		if !dropped {
			omits(t, output, "delivery-limit-default") // this hint appears only where rejected messages are lost
		}
	}

	tf.applied(t, old(has))
	plan("a queue is removed", old(left), true)
	plan("a destroy", old(has), true, "-destroy")
	plan("both steps of a move", old(left)+taker, true)
	plan("a move from a pipeline that goes", taker, true)
	attachment := fmt.Sprintf("resource \"rabbitmq_retry_attachment\" \"work\" {\n  pipeline = \"old\"\n  vhost = %q\n  queue = \"work\"\n}\n", tf.Vhost)
	plan("both steps to an attachment", old(left)+attachment, true)
	plan("an attachment besides", old(has)+attachment, false)
	later := "resource \"terraform_data\" \"name\" { input = \"other\" }\n"
	mentions(t, tf.planned(t, later+old(`work_queues = { (terraform_data.name.output) = {} }`)), "Rejected messages might be dropped", "- work ")
	plan("a take-over", old(has)+taker, false)
	tf.apply(t)
	plan("the old one lets go", old(left)+taker, false)
	plan("the new one lets go", old(has)+pipelineNamed(tf.Broker, "new", none), false)
	plan("both let go", old(left)+pipelineNamed(tf.Broker, "new", none), true)
	plan("both are destroyed", old(has)+taker, true, "-destroy")
	tf.applied(t, old(left)+taker)
	// As long as a message waits in the old pipeline, the queue that it can come back to stays bound.
	tf.Publish(t, "old.dlx", "work", amqp.Publishing{Body: []byte("waits")})
	acctest.AwaitCount(t, tf.Broker, "old.inbox", 1)
	plan("what was detached", old(left, `max_age = "1h"`)+taker, false)
	tf.applied(t, old(none)+taker)
	plan("a queue dead-letters by its arguments", taker, true)
}

// A queue with a consumer keeps its pipeline, and a failed queue that others use stays with its messages.
func TestAcc_DestroyPlansNameWhatTheApplyRefuses(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	shares := pipelineNamed(tf.Broker, "bills", `work_queues = { bills = { declare = true, failed_queue = { name = "dead", declare = false } } }`)
	goes := pipelineNamed(tf.Broker, "orders", `work_queues = { work = { declare = true, failed_queue = { name = "dead" } } }`)
	tf.applied(t, goes)
	tf.applied(t, goes+shares)
	tf.Publish(t, "", "dead", amqp.Publishing{DeliveryMode: amqp.Persistent})
	acctest.AwaitCount(t, tf.Broker, "dead", 1)
	omits(t, tf.planned(t, shares), "dead: 1 message")
	tf.Consume(t, "work", 1)
	awaitReported(t, tf.Broker, "work", "consumers", 1.0)
	mentions(t, tf.planned(t, shares), "work: 1 consumer")
}

// Bindings from the pipeline's exchanges are deleted with them. With force_destroy, bindings to its objects are deleted, too.
// Each plan names the bindings that it deletes. Without force_destroy, bindings to its objects prevent the destroy, and the
// plan gives a remedy.
func TestAcc_PlansNameTheBindingsOfOthersThatGo(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	config := pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work" = { declare = true } }`, `force_destroy = true`)
	tf.applied(t, config)
	tf.DeclareQueue(t, "work listener", "quorum", nil)
	for path, key := range map[string]string{
		tf.Path("bindings", "e", "amq.topic", "q", "work"):           "to a declared queue",
		tf.Path("bindings", "e", "amq.topic", "q", "orders.failed"):  "to an own queue",
		tf.Path("bindings", "e", "amq.topic", "e", "orders.failed"):  "to an exchange",
		tf.Path("bindings", "e", "orders.dlx", "q", "work listener"): "from an exchange",
		tf.Path("bindings", "e", "amq.topic", "q", "work listener"):  "elsewhere",
		tf.Path("bindings", "e", "orders.failed", "e", "amq.fanout"): "between exchanges",
	} {
		tf.Call(t, http.MethodPost, path, map[string]any{"routing_key": key}, nil)
	}
	renamed := strings.Replace(config, `name = "orders"`, `name = "bills"`, 1)
	for name, c := range map[string]struct {
		config    string
		arguments []string
		want      bool
	}{
		"change":     {strings.Replace(config, "5s", "7s", 1), nil, false},
		"destroy":    {config, []string{"-destroy"}, true},
		"removal":    {"", nil, true},
		"other name": {renamed, nil, true},
		"other type": {strings.Replace(config, "delays", "queue_type = \"classic\"\n  delays", 1), nil, true},
	} {
		output := tf.planned(t, c.config, c.arguments...)
		_, warning, _ := strings.Cut(output, "Bindings of others are deleted")
		warning, _, _ = strings.Cut(warning, "If their owners need them")
		for _, key := range []string{"to a declared queue", "to an own queue", "to an exchange", "from an exchange", "between exchanges"} {
			if strings.Contains(warning, key) != c.want {
				t.Errorf("%s: the plan names the binding %q: %t\n%s", name, key, !c.want, output)
			}
		}
		omits(t, warning, "elsewhere", "return:work]") // a binding that stays, and the pipeline's own binding
	}
	tf.applied(t, strings.Replace(config, "force_destroy = true", "", 1))
	output := tf.plan(t, "-destroy")
	_, inTheWay, _ := strings.Cut(output, "Exchanges or queues are bound by others")
	inTheWay, going, _ := strings.Cut(inTheWay, "Bindings of others are deleted")
	blocking := []string{"amq.topic -> work ['to a declared queue']", "amq.topic -> orders.failed ['to an own queue']", "['to an exchange']", "set declare = false"}
	mentions(t, inTheWay, blocking...)
	omits(t, going, blocking...)
	omits(t, inTheWay, "from an exchange")
	mentions(t, going, "from an exchange")
	tf.refuses(t, []string{"-destroy"}, "amq.topic -> work ['to a declared queue']", "set declare = false", "Or remove these bindings first")
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.refuses(t, nil, "Nothing of this resource was changed", "amq.topic -> work ['to a declared queue']")
}

// If the binding is a separate resource, Terraform destroys it first. The plan warns, and one run destroys both.
func TestAcc_BindingOfItsOwnGoesWithTheQueueInOneRun(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	bindings := tf.Path("bindings", "e", "amq.topic", "q", "work")
	call := fmt.Sprintf("curl -fsS -u %s:%s -H content-type:application/json", tf.Username, tf.Password)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work" = { declare = true } }`)+fmt.Sprintf(`
resource "terraform_data" "binding" {
  depends_on = [rabbitmq_retry_pipeline.orders]
  provisioner "local-exec" {
    command = "%[1]s -X POST %[2]s%[3]s -d '{\"routing_key\":\"of-others\"}'"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "%[1]s -X DELETE %[2]s%[3]s/of-others"
  }
}
`, call, tf.Endpoint, bindings))
	tf.apply(t)
	mentions(t, tf.plan(t, "-destroy"), "amq.topic -> work [of-others]")
	if output, code := tf.run(t, "destroy", "-auto-approve", "-input=false"); code != 0 {
		t.Fatal(output)
	}
	require.NoError(t, acctest.NothingLeft(t, tf.Broker))
	there(t, tf.Broker, false, "queues", "work")
}

// The plan of a destroy or a replacement says whether the remaining messages are lost.
func TestAcc_PlanOfADestroySaysWhatForceDeletes(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	config := pipelineHCL(tf.Broker, `delays = ["5s"]`, `force_destroy = false`)
	forced := strings.Replace(config, "false", "true", 1)
	says := func(config, words string) {
		t.Helper()
		tf.applied(t, config)
		plans := []string{tf.plan(t, "-destroy")}
		tf.configure(t, strings.Replace(config, `name = "orders"`, `name = "bills"`, 1))
		for _, output := range append(plans, tf.plan(t)) {
			mentions(t, output, "orders.failed: 1 message", words)
		}
	}
	tf.applied(t, config)
	tf.Publish(t, "orders.failed", "work", amqp.Publishing{DeliveryMode: amqp.Persistent})
	acctest.AwaitCount(t, tf.Broker, "orders.failed", 1)
	says(config, "Nothing is deleted while messages would be lost")
	says(forced, "Destroying the pipeline deletes messages")
}

// Terraform plans an apply before it plans a destroy, and this plan looks like any other. So the error that ends it says how
// to continue.
func TestAcc_ErrorOfAPlanNamesTheDestroyThatPasses(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work" = {} }`))
	putPolicy(t, tf.Broker, "policies", "org", "^work$", 5000, map[string]any{"max-length": 5})

	const hint = "terraform destroy -refresh=false"
	output, code := tf.run(t, "destroy", "-input=false", "-auto-approve")
	if code == 0 || !strings.Contains(output, "policy_priority = 5001") || !strings.Contains(output, hint) {
		t.Fatalf("destroy: %d\n%s", code, output)
	}
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["7s"]`, `work_queues = { "work" = {} }`))
	if output, code := tf.run(t, "plan", "-input=false"); code == 0 || strings.Contains(output, hint) {
		t.Fatalf("the plan of a change speaks of a destroy: %d\n%s", code, output)
	}
	if output, code := tf.run(t, "destroy", "-input=false", "-auto-approve", "-refresh=false"); code != 0 {
		t.Fatalf("destroy -refresh=false: %d\n%s", code, output)
	}
	require.NoError(t, acctest.NothingLeft(t, tf.Broker))
}

// A pipeline's plan fits on a page, apart from operator_permissions. It tells once for all pipelines which calls consumers
// must make.
func TestAcc_PlanIsReadable(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	var config strings.Builder
	for _, name := range []string{"orders", "mails", "events"} {
		tf.DeclareQueue(t, name+".created", "quorum", nil)
		config.WriteString(pipelineLabelled(tf.Broker, name, name, `delays = ["5s", "30s", "5m"]`, fmt.Sprintf("work_queues = { %q = {} }", name+".created")))
	}
	tf.configure(t, config.String())
	output, code := tf.printed(t, "plan", "-input=false")
	if code != 0 {
		t.Fatalf("the plan ends with %d:\n%s", code, output)
	}
	for _, name := range []string{"orders", "mails", "events"} {
		_, block, _ := strings.Cut(output, "rabbitmq_retry_pipeline."+name+" will be created\n")
		block, _, found := strings.Cut(block, "\n    }\n")
		shown := regexp.MustCompile(`(?s)\n      \+ operator_permissions .*?\n        }`).ReplaceAllString(block, "")
		if lines := strings.Count(shown, "\n") + 3; !found || len(shown) == len(block) || lines > 80 { // the heading, the last line and the brace
			t.Errorf("the plan of %s has %d lines:\n%s", name, lines, shown)
		}
	}
	omits(t, output, "Warning:")
	output, _ = tf.printed(t, "apply", "-input=false", "-auto-approve")
	_, warning, _ := strings.Cut(output, "Consumers must call basic.nack(requeue=false)\n")
	paragraphs := strings.Split(strings.ReplaceAll(warning, "│", ""), "\n\n")
	if strings.Count(output, "requeue=true") != 1 || len(paragraphs) < 2 || strings.Count(strings.TrimSpace(paragraphs[1]), "\n") > 1 {
		t.Errorf("what consumers must call is not said once, in two lines:\n%s", output)
	}
	omits(t, output, "similar warning")
	omits(t, tf.applied(t, strings.ReplaceAll(config.String(), "5m", "6m")), "Consumers must call")
}

// The plan says which queue, vhost or pipeline is meant, and so does the apply. Other owners' objects count, too.
func TestAcc_MisspeltNames(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	tf.DeclareQueue(t, "orders.created", "quorum", nil)
	tf.DeclareQueue(t, "lonely", "quorum", map[string]any{"x-dead-letter-exchange": "ordrs.dlx"})
	bills := pipelineNamed(tf.Broker, "bills", `work_queues = { "bills.paid" = { declare = true, failed_queue = { name = "bills.dead" } } }`)
	tf.applied(t, bills)
	config := bills + pipelineHCL(tf.Broker, `delays = ["5s"]`,
		`work_queues = { "orders.crated" = { failed_queue = { name = "bills.ded", declare = false } }, "none.of.these" = {} }`)
	meant := []string{`- orders.crated (did you mean "orders.created"?)`, `- bills.ded (did you mean "bills.dead"?)`, "- none.of.these "}
	mentions(t, tf.planned(t, config), append(meant, "refer to a data source: data.rabbitmq_queue.NAME.name")...)
	tf.refuses(t, nil, append(meant, "declare = true in its work_queues")...)

	attachment := fmt.Sprintf("resource \"rabbitmq_retry_attachment\" \"work\" {\n  pipeline = \"bils\"\n  vhost = %q\n  queue = \"orders.created\"\n}\n", tf.Vhost)
	mentions(t, tf.planned(t, bills+attachment), `no retry pipeline "bils" (did you mean "bills"?)`)
	tf.refuses(t, nil, `no retry pipeline "bils" (did you mean "bills"?)`)

	elsewhere := &brokertest.Broker{Vhost: tf.Vhost + "s"}
	vhost := fmt.Sprintf("Vhost %q (did you mean %q?) does not exist", elsewhere.Vhost, tf.Vhost)
	mentions(t, tf.planned(t, bills+pipelineHCL(elsewhere, `delays = ["5s"]`)), vhost)
	tf.refuses(t, nil, vhost)

	source := fmt.Sprintf("data \"rabbitmq_queue\" \"work\" {\n  name = \"orders.crated\"\n  vhost = %q\n}\n", tf.Vhost)
	tf.configure(t, bills+source+pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { (data.rabbitmq_queue.work.name) = {} }`))
	output, code := tf.run(t, "plan", "-input=false")
	require.Equal(t, 1, code)
	mentions(t, output, `Queue "orders.crated" in vhost`, `is not on the broker (did you mean "orders.created"?)`)
}

// Terraform counts resources only.
func TestAcc_PlansCountTheQueuesThatGo(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	config := func(delays string) string {
		return pipelineHCL(tf.Broker, delays, `work_queues = { work = { declare = true } }`)
	}
	omits(t, tf.planned(t, config(`delays = ["5s", "30s", "2m"]`)), "Queues to delete", "Delays decrease")
	tf.apply(t)
	omits(t, tf.applied(t, config(`delays = ["2m"]`)), "Queues to delete")
	output := tf.planned(t, config(`delays = ["2m", "1m"]`))
	mentions(t, output, "Queues to delete: 2", "- orders.retry.30s", "- orders.retry.5s", "Delays decrease", `"1m" comes after the longer "2m"`)
	tf.apply(t)
	omits(t, tf.planned(t, pipelineHCL(tf.Broker, `delays = ["2m", "1m"]`)), "Delays decrease", "- orders.retry")
	mentions(t, tf.plan(t), "Queues to delete: 1", "- work")
}

// A value that is only known after apply can replace the resource, too.
func TestAcc_ReplacementThroughAnUnknownValueDeletesMessages(t *testing.T) {
	t.Parallel()
	tf := newCLI(t)
	config := func(trigger string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"type\" {\n  input = \"quorum\"\n  triggers_replace = [%q]\n}\n", trigger) +
			pipelineHCL(tf.Broker, `delays = ["5s"]`, `queue_type = terraform_data.type.output`, `force_destroy = true`)
	}
	tf.applied(t, config("first"))
	tf.Publish(t, "orders.failed", "", persistent("goes"))
	acctest.AwaitCount(t, tf.Broker, "orders.failed", 1)
	if output := tf.planned(t, config("second")); !strings.Contains(output, "deletes messages") {
		t.Errorf("no warning:\n%s", output)
	}
}
