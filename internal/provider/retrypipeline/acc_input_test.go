package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Terraform breaks long lines, so that a blank in an expression stands for any white space.
func says(text string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + strings.ReplaceAll(text, " ", `[\s│]+`))
}

func TestAcc_BadInputFailsAtPlanTime(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work.classic", "classic", nil)
	b.Call(t, http.MethodPut, b.Path("queues", "work.dlx"), map[string]any{"durable": true, "arguments": map[string]any{
		"x-queue-type": "quorum", "x-dead-letter-exchange": "old",
	}}, nil)
	b.DeclareQueue(t, "work.expires", "quorum", map[string]any{"x-expires": 3_600_000})
	b.Call(t, http.MethodPut, b.Path("operator-policies", "op"), map[string]any{
		"pattern": "expired$", "apply-to": "queues", "definition": map[string]any{"expires": 3_600_000},
	}, nil)
	b.Call(t, http.MethodPut, b.Path("queues", "fleeting"), map[string]any{"durable": true, "auto_delete": true}, nil)
	var many []string
	for i := range 700 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprintf("%dms", i+1)))
	}
	// Terraform validates everything before it plans anything.
	validated, planned := badInputs{vhost: b.Vhost}, badInputs{vhost: b.Vhost, config: "resource \"terraform_data\" \"later\" {}\n"}
	for name, c := range map[string]struct{ lines, says string }{
		"no delays":               {`delays = []`, `on .* line .*delays = \[\].*at least one delay`},
		"negative delay":          {`delays = ["5s", "-1s"]`, `delays = .*"-1s" is negative`},
		"no duration":             {`delays = ["5 seconds"]`, `delays = .*is not a duration`},
		"delay beyond the limit":  {`delays = ["87601h"]`, `delays = .*longer than the broker's limit`},
		"delay below 1ms":         {`delays = ["1500us"]`, `delays = .*finer than a millisecond`},
		"one attempt":             {"delays = [\"5s\"]\n  max_attempts = 1", `max_attempts = 1.*nothing is ever retried`},
		"unused delays":           {"delays = [\"5s\", \"6s\", \"7s\"]\n  max_attempts = 3", `max_attempts = 3.*Raise max_attempts to 4`},
		"no age":                  {"delays = [\"5s\"]\n  max_age = \"soon\"", `on .* line .*max_age = "soon".*"soon" is not a duration`},
		"age of zero":             {"delays = [\"5s\"]\n  max_age = \"0s\"", `max_age = "0s".*"0s" is not positive`},
		"negative age":            {"delays = [\"5s\"]\n  max_age = \"-1h\"", `max_age = "-1h".*"-1h" is not positive`},
		"age finer than 1ms":      {"delays = [\"5s\"]\n  max_age = \"10s5us\"", `max_age = .*finer than a millisecond`},
		"one attempt for a queue": {"delays = [\"5s\"]\n  work_queues = { w = { max_attempts = 1 } }", `work_queues\["w"\].max_attempts: .*so 1 means that nothing is ever retried`},
		"no attempt for a queue":  {"delays = [\"5s\"]\n  work_queues = { w = { max_attempts = 0 } }", `work_queues\["w"\].max_attempts: .*so 0 means that nothing is ever retried`},
		"attempts of a queue":     {"delays = [\"5s\"]\n  work_queues = { w = { max_attempts = 2147483648 } }", `work_queues\["w"\].max_attempts: .*at most 2147483647`},
		"unused by all queues":    {"delays = [\"5s\", \"6s\", \"7s\"]\n  max_attempts = 2\n  work_queues = { w = { max_attempts = 3 } }", `max_attempts = 2.*Raise max_attempts to 4`},
		"unknown reason":          {"delays = [\"5s\"]\n  retry_on = [\"rejected\", \"bored\"]", `retry_on .*"bored" is not a reason`},
		"without rejected":        {"delays = [\"5s\"]\n  retry_on = [\"expired\"]", `retry_on .*"rejected" into the set`},
		"unknown queue type":      {"delays = [\"5s\"]\n  queue_type = \"lazy\"", `queue_type = "lazy".*must be one of: \["quorum" "classic"\]`},
		"stream pipeline":         {"delays = [\"5s\"]\n  queue_type = \"stream\"", `queue_type = "stream".*must be one of`},
		"own queue":               {"delays = [\"5s\"]\n  work_queues = { \"orders.retry.9s\" = {} }", `one of the pipeline's own queues`},
		"unknown work queue type": {"delays = [\"5s\"]\n  work_queues = { \"w\" = { type = \"stream\" } }", `work_queues\["w"\].type value must be one of: \["quorum" "classic"\]`},
		"unknown attachment":      {"delays = [\"5s\"]\n  work_queues = { \"w\" = { attach = \"magic\" } }", `work_queues\["w"\].attach value must be one of: \["policy" "arguments"\]`},
		"unknown strategy":        {"delays = [\"5s\"]\n  work_queues = { \"w\" = { dead_letter_strategy = \"never\" } }", `work_queues\["w"\].dead_letter_strategy value must be one of: \["at-least-once" "at-most-once"\]`},
		"policy priority of zero": {"delays = [\"5s\"]\n  policy_priority = 0", `policy_priority = 0.*must be at least 1`},
		"arguments, not declared": {"delays = [\"5s\"]\n  work_queues = { \"w\" = { arguments_json = \"{\\\"a\\\":1}\" } }", `goes with declare = true`},
		"reserved argument":       {"delays = [\"5s\"]\n  work_queues = { \"w\" = { declare = true, arguments_json = jsonencode({ x-expires = 5 }) } }", `deletes the queue with its messages`},
		"arguments no object":     {"delays = [\"5s\"]\n  work_queues = { \"w\" = { declare = true, arguments_json = \"[]\" } }", `must be a JSON object`},
		"own failed queue":        {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { failed_queue = { name = \"w\" } }\n  }", `: "w" = .*work_queues\["w"\].failed_queue.name: "w" would get its own failed messages`},
		"failed queue of dots":    {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { failed_queue = { name = \"..\" } }\n  }", `: "w" = .*work_queues\["w"\].failed_queue.name: HTTP clients and proxies take ".." for`},
		"work queue of a dot":     {"delays = [\"5s\"]\n  work_queues = {\n    \".\" = { declare = true }\n  }", `: "." = .*HTTP clients and proxies take "." for`},
		"failed queue of no name": {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { failed_queue = { name = \"\" } }\n  }", `work_queues\["w"\].failed_queue.name string length must be at least 1`},
		"long work queue":         {"delays = [\"5s\"]\n  work_queues = { \"" + strings.Repeat("w", 256) + "\" = {} }", `at most 255 bytes`},
	} {
		validated.add(name, "orders", c.lines, c.says)
	}
	for name, c := range map[string]struct{ lines, says string }{
		"attempts of many queues":  {"delays = [\"5s\"]\n  work_queues = { for i in range(400) : \"queue-${i}\" => { declare = true, max_attempts = 3 } }", `work_queues = .*only where it differs`},
		"another type":             {"delays = [\"5s\"]\n  work_queues = { \"work.classic\" = {} }", `is a classic queue.*"work.classic" = { type = "classic" }`},
		"own dead-letter exchange": {"delays = [\"5s\"]\n  work_queues = { \"work.dlx\" = {} }", `x-dead-letter-exchange = "old".*Arguments take precedence over policies`},
		"expiring work queue":      {"delays = [\"5s\"]\n  work_queues = {\n    \"work.expires\" = {}\n  }", `: "work.expires" = .*"work.expires" has x-expires: RabbitMQ deletes it`},
		"expired work queue":       {"delays = [\"5s\"]\n  work_queues = {\n    \"work.expired\" = { declare = true }\n  }", `: "work.expired" = .*operator policy "op" sets expires for queue "work.expired"`},
		"fleeting failed queue":    {"delays = [\"5s\"]\n  work_queues = {\n    \"work.dlq\" = { declare = true, failed_queue = { name = \"fleeting\", declare = false } }\n  }", `: "work.dlq" = .*work_queues\["work.dlq"\].failed_queue.name: Queue "fleeting" is a stream, exclusive`},
		"unknown take-over":        {"delays = [\"5s\"]\n  work_queues = {\n    \"w\" = { take_over_from = terraform_data.later.id }\n  }", `: "w" = .*work_queues\["w"\].take_over_from must be known`},
		"definition too long":      {"delays = [" + strings.Join(many, ",") + "]", `may have at most 4000`},
		"long policy definition":   {"delays = [\"5s\"]\n  policy_definition_json = jsonencode({ consumer-timeout = \"" + strings.Repeat("9", 4000) + "\" })", `policy_definition_json = .*may have at most 4000.*Shorten it`},
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
		failsToPlan(t, "provider \"rabbitmq\" {\n  password = \"wrong\"\n}\n"+pipelineHCL(b, `delays = ["5s"]`), `refused the user.*answered 401.*knows no such user with this password: set username and password`)
	})
	t.Run("no policymaker", func(t *testing.T) {
		t.Parallel()
		user, password := b.User(t, "management", ".*", ".*", ".*")
		config := fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password)
		failsToPlan(t, config+pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work.classic" = { type = "classic" } }`), `needs the tag policymaker`)
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
		imports("orders", `not of the form`),
		imports("a/b/orders", `not of the form`),
		imports(importID(b.Vhost, "orders"), `there is no pipeline of this name`),
		resource.TestStep{Config: config},
	)
}
