package retrypipeline_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestAcc_BadInputFailsAtPlanTime(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work.classic", "classic", nil)
	b.DeclareQueue(t, "work.dlx", "quorum", map[string]any{"x-dead-letter-exchange": "old"})
	b.DeclareQueue(t, "work.expires", "quorum", map[string]any{"x-expires": 3_600_000})
	b.Call(t, http.MethodPut, b.Path("queues", "fleeting"), map[string]any{"durable": true, "auto_delete": true}, nil)
	// Terraform validates all resources before it plans any.
	later := "resource \"terraform_data\" \"later\" {}\n"
	validated, planned := badInputs{Broker: b, config: later}, badInputs{Broker: b, config: later}
	for name, c := range map[string]struct{ lines, says string }{
		"no delays":               {`delays = []`, `on .* line .*delays = \[\].*at least one delay`},
		"negative delay":          {`delays = ["5s", "-1s"]`, `delays = .*"-1s" is negative`},
		"one attempt":             {"delays = [\"5s\"]\n  max_attempts = 1", `max_attempts = 1.*nothing is ever retried`},
		"unused delays":           {"delays = [\"5s\", \"6s\", \"7s\"]\n  max_attempts = 3", `max_attempts = 3.*Raise max_attempts to 4`},
		"no age":                  {"delays = [\"5s\"]\n  max_age = \"soon\"", `on .* line .*max_age = "soon".*"soon" is not a duration`},
		"one attempt later":       {"delays = split(\",\", terraform_data.later.id)\n  max_attempts = 1", `max_attempts = 1.*nothing is ever retried`},
		"no age later":            {"delays = split(\",\", terraform_data.later.id)\n  max_age = \"soon\"", `max_age = "soon".*"soon" is not a duration`},
		"one attempt for a queue": {"delays = [\"5s\"]\n  work_queues = { w = { max_attempts = 1 } }", `work_queues\["w"\].max_attempts: .*so 1 means that nothing is ever retried`},
		"unknown reason":          {"delays = [\"5s\"]\n  retry_on = [\"rejected\", \"bored\"]", `retry_on .*"bored" is not a reason`},
		"unknown queue type":      {"delays = [\"5s\"]\n  queue_type = \"lazy\"", `queue_type = "lazy".*write one of these: \["quorum" "classic"\]`},
		"unknown work queue type": {"delays = [\"5s\"]\n  work_queues = { \"w\" = { type = \"stream\" } }", `work_queues\["w"\].type: write one of these: \["quorum" "classic"\]`},
		"unknown attachment":      {"delays = [\"5s\"]\n  work_queues = { \"w\" = { attach = \"magic\" } }", `work_queues\["w"\].attach: write one of these: \["policy" "arguments"\]`},
		"unknown strategy":        {"delays = [\"5s\"]\n  work_queues = { \"w\" = { dead_letter_strategy = \"never\" } }", `work_queues\["w"\].dead_letter_strategy: write one of these: \["at-least-once" "at-most-once"\]`},
		"policy priority of zero": {"delays = [\"5s\"]\n  policy_priority = 0", `policy_priority = 0.*must be at least 1`},
		"reserved argument":       {"delays = [\"5s\"]\n  work_queues = { \"w\" = { declare = true, arguments_json = jsonencode({ x-expires = 5 }) } }", `deletes the queue with its messages`},
		"arguments no object":     {"delays = [\"5s\"]\n  work_queues = { \"w\" = { declare = true, arguments_json = \"[]\" } }", `must be a JSON object`},
		"own failed queue":        {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { failed_queue = { name = \"w\" } }\n  }", `: "w" = .*work_queues\["w"\].failed_queue.name: "w" would get its own failed messages`},
		"failed queue of dots":    {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { failed_queue = { name = \"..\" } }\n  }", `: "w" = .*work_queues\["w"\].failed_queue.name: HTTP clients and proxies take ".." for`},
		"work queue of a dot":     {"delays = [\"5s\"]\n  work_queues = {\n    \".\" = { declare = true }\n  }", `: "." = .*HTTP clients and proxies take "." for`},
		"failed queue of no name": {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { failed_queue = { name = \"\" } }\n  }", `work_queues\["w"\].failed_queue.name: the name is empty`},
		"engine nobody knows":     {"engine = \"nativ\"\n  delays = [\"1s\"]", `write one of these: \["worker" "native" "consumer"\]`},
	} {
		validated.add(name, "orders", c.lines, c.says)
	}
	for name, c := range map[string]struct{ lines, says string }{
		"attempts of many queues":    {"delays = [\"5s\"]\n  work_queues = { for i in range(400) : \"queue-${i}\" => { declare = true, max_attempts = 3 } }", `work_queues = .*only where it differs`},
		"own dead-letter exchange":   {"delays = [\"5s\"]\n  work_queues = { \"work.dlx\" = {} }", `x-dead-letter-exchange = "old".*Arguments take precedence over policies`},
		"expiring work queue":        {"delays = [\"5s\"]\n  work_queues = {\n    \"work.expires\" = {}\n  }", `: "work.expires" = .*"work.expires" has x-expires: RabbitMQ deletes it`},
		"fleeting failed queue":      {"delays = [\"5s\"]\n  work_queues = {\n    \"work.dlq\" = { declare = true, failed_queue = { name = \"fleeting\", declare = false } }\n  }", `: "work.dlq" = .*work_queues\["work.dlq"\].failed_queue.name: Queue "fleeting" is a stream, exclusive`},
		"unknown take-over":          {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { take_over_from = terraform_data.later.id }\n  }", `: "w" = .*work_queues\["w"\].take_over_from must be known`},
		"long policy definition":     {"delays = [\"5s\"]\n  policy_definition_json = jsonencode({ consumer-timeout = \"" + strings.Repeat("9", 4000) + "\" })", `policy_definition_json = .*can have at most 4000.*Shorten it`},
		"native delays":              {"engine = \"native\"\n  delays = [\"5s\", \"30s\", \"5m\"]", `twice, three times`},
		"native attempts of a queue": {"engine = \"native\"\n  delays = [\"1s\"]\n  work_queues = { work = { max_attempts = 3 } }", `work_queues\["work"\]\.max_attempts: With engine`},
	} {
		planned.add(name, label(name), c.lines, c.says)
	}
	for name, c := range map[string]struct{ pipeline, says string }{
		"empty name":    {"", `name .*Name the pipeline`},
		"reserved name": {"a/b", `name .*separates the parts of policy names`},
		"amq":           {"amq", `name .*Brokers keep names`},
		"dot":           {".", `name .*take "." for a step within a path`},
	} {
		validated.add(name, c.pipeline, `delays = ["5s"]`, c.says)
	}
	planned.add("long name", strings.Repeat("n", 235), `delays = ["5s"]`, `name .*for a quorum queue, vhost and name together`)
	validated.fail(t)
	planned.fail(t)
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		failsToPlan(t, "provider \"rabbitmq\" {\n  password = \"wrong\"\n}\n"+pipelineHCL(b, `delays = ["5s"]`), `refused the user.*answered 401.*does not accept this user and password: set username and password`)
	})
	t.Run("no policymaker", func(t *testing.T) {
		t.Parallel()
		failsToPlan(t, as(b.User(t, "management", ".*", ".*", ".*"))+pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work.classic" = { type = "classic" } }`), `needs the tag policymaker`)
	})
}

func failsToPlan(t *testing.T, config, message string) {
	t.Helper()
	acctest.Require(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(acctest.Quick()),
		Steps:                    []resource.TestStep{{Config: config, PlanOnly: true, ExpectError: says(message)}},
	})
}

func TestAcc_InvalidImports(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`)
	imports := func(id, message string) resource.TestStep {
		return resource.TestStep{Config: config, ResourceName: address, ImportState: true, ImportStateId: id, ExpectError: says(message)}
	}
	acceptQuickly(t, b,
		imports(importID(b.Vhost, "a/b"), `Reserved character`),
		imports(importID(b.Vhost, "orders"), `there is no pipeline of this name`),
		resource.TestStep{Config: config},
	)
}

// badInputs are pipelines in one configuration. The plan of each fails for a separate reason.
type badInputs struct {
	*brokertest.Broker
	config string
	says   map[string]string
}

// add adds a pipeline and the text of its error.
func (in *badInputs) add(name, pipeline, lines, says string) {
	in.config += pipelineLabelled(in.Broker, label(name), pipeline, lines)
	if in.says == nil {
		in.says = map[string]string{}
	}
	in.says[name] = says
}

// label turns a name into a label that HCL accepts.
func label(name string) string { return regexp.MustCompile(`\W+`).ReplaceAllString(name, "_") }

// fail plans once, and fails the subtest of each pipeline whose error the plan does not show.
func (in *badInputs) fail(t *testing.T) {
	t.Helper()
	acctest.Require(t)
	var printed string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(acctest.Times()),
		ErrorCheck:               func(err error) error { printed = err.Error(); return nil },
		Steps:                    []resource.TestStep{{Config: in.config, PlanOnly: true}},
	})
	found := map[string][]string{}
	for _, text := range strings.Split(printed, "\nError: ")[1:] {
		if at := withResource.FindStringSubmatch(text); at != nil {
			found[at[1]] = append(found[at[1]], text)
		}
	}
	for name, want := range in.says {
		t.Run(name, func(t *testing.T) {
			if errors := found[label(name)]; !slices.ContainsFunc(errors, says(want).MatchString) {
				t.Errorf("got %q, want one that says %q", errors, want)
			}
		})
	}
}

var withResource = regexp.MustCompile(`with rabbitmq_retry_pipeline\.(\w+),`)

// Brokers remove line breaks from the names of queues and exchanges, so the plan refuses such names. They keep line breaks in
// the names of vhosts, policies and bindings, which do no harm.
func TestAcc_NamesWithLineBreaks(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "vhost\r\nwith line breaks\n")
	for kind, body := range map[string]any{"queues": map[string]any{"durable": true}, "exchanges": map[string]any{"type": "topic"}} {
		b.Call(t, http.MethodPut, b.Path(kind, "foreign\r\nname"), body, nil)
		if found := acctest.Names(t, b, kind); !slices.Contains(found, "foreignname") {
			t.Errorf("%s: %q", kind, found)
		}
	}
	bound("foreignname", "foreignname", "k\r\ney", nil)(t, b)
	putPolicy(t, b, "policies", "foreign\npolicy", "^work$", 1, map[string]any{"queue-leader-locator": "balanced"})
	declared := `work_queues = { work = { declare = true, policy_definition_json = jsonencode({ "queue-leader-locator" = "balanced" }) } }`
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{
			Config:   pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "wo\nrk" = { declare = true } }`),
			PlanOnly: true, ExpectError: says(`Line break in a queue's name`),
		},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, `work_queues = { work = { declare = true } }`), PlanOnly: true, ExpectError: says(`foreign\\npolicy`)},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, declared)},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodPost, b.Path("bindings", "e", "foreignname", "q", "work"), map[string]any{"routing_key": "k\r\ney", "arguments": map[string]any{"a\nb": "c\r\nd"}}, nil)
			},
			Config: pipelineHCL(b, `delays = ["5s"]`, declared), ConfigPlanChecks: unchanged,
		},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`), ExpectError: says(`foreignname -> work`)},
		resource.TestStep{PreConfig: func() { unbound("foreignname", "work")(t, b) }, Config: pipelineHCL(b, `delays = ["5s"]`)},
	)
}

// If the plan refuses an argument of a queue, the broker refuses it, too. Arguments that all releases accept pass.
func TestAccEveryRelease_ArgumentsThatATypeDoesNotSupport(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	everywhere := map[string][]string{
		topology.Quorum: {
			"x-delivery-limit", "x-max-in-memory-bytes", "x-max-in-memory-length", "x-message-ttl", "x-queue-leader-locator",
			"x-quorum-initial-group-size", "x-single-active-consumer",
		},
		topology.Classic: {"x-max-length", "x-max-length-bytes", "x-max-priority", "x-message-ttl", "x-queue-mode", "x-queue-version", "x-single-active-consumer"},
	}
	values := map[string]any{
		"x-delivery-limit": 5, "x-initial-cluster-size": 1, "x-max-age": "1D", "x-max-in-memory-bytes": 5, "x-max-in-memory-length": 5,
		"x-max-length": 5, "x-max-length-bytes": 500, "x-max-priority": 5, "x-message-ttl": 5000, "x-queue-leader-locator": "balanced",
		"x-queue-master-locator": "min-masters", "x-queue-mode": "lazy", "x-queue-version": 2, "x-quorum-initial-group-size": 1,
		"x-single-active-consumer": true, "x-stream-max-segment-size-bytes": 1_000_000,
	}
	for queueType, supported := range everywhere {
		refused := 0
		for key, value := range values {
			workQueue := pipeline.WorkQueue{Type: queueType, Declare: true, DeadLetterStrategy: topology.AtMostOnce, Arguments: topology.Arguments{key: value}}
			var found *problem.Problem
			for _, p := range preflight.CheckWorkQueue("orders", "work", workQueue) {
				if p.Summary == "Unsupported argument" {
					found = &p
					refused++
				}
			}
			arguments := map[string]any{"x-queue-type": queueType, key: value}
			status, answer := b.Request(t, http.MethodPut, b.Path("queues", queueType+key), map[string]any{"durable": true, "arguments": arguments})
			if found != nil && (status != http.StatusBadRequest || !strings.Contains(found.Detail, `"`+key+`"`)) {
				t.Errorf("%s, %s: the plan refuses it (%v), the broker answers %d %s", queueType, key, *found, status, answer)
			}
			for _, accepted := range supported {
				if accepted == key && (found != nil || status != http.StatusCreated) {
					t.Errorf("%s, %s: %v, %d %s", queueType, key, found, status, answer)
				}
			}
		}
		if refused != 7 {
			t.Errorf("%s: %d arguments are refused", queueType, refused)
		}
	}
	acceptQuickly(t, b, resource.TestStep{
		Config:   pipelineHCL(b, `delays = ["5s"]`, `work_queues = { work = { declare = true, arguments_json = jsonencode({ "x-max-priority" = 5 }) } }`),
		PlanOnly: true, ExpectError: says(`Unsupported argument.*Remove "x-max-priority": a quorum queue does not support it`),
	})
}
