package retrypipeline_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func TestAccEveryRelease_ShadowedPolicyHasToBeAccountedFor(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	putPolicy(t, b, "policies", "org", "^(?!amq).*", 3, map[string]any{"queue-leader-locator": "balanced", "expires": 3600000})
	kept := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = { policy_definition_json = jsonencode({ "queue-leader-locator" = "balanced", "expires" = null }) } }`)
	acceptQuickly(t, b,
		resource.TestStep{
			Config:      pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = {} }`),
			ExpectError: regexp.MustCompile(`(?s)Keys of another policy would no longer apply.*"work" = \{ policy_definition_json = jsonencode\(\{ "expires" = null,\s+"queue-leader-locator" = "balanced" \}\) \}`),
		},
		resource.TestStep{
			Config: kept,
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address,
				tfjsonpath.New("topology").AtMapKey("policies").AtMapKey("retry/orders/queue/work"),
				knownvalue.StringRegexp(regexp.MustCompile(` queue-leader-locator=balanced$`)))},
		},
		// If the shadowed policy changes later, plans continue with a warning.
		resource.TestStep{
			PreConfig: func() { putPolicy(t, b, "policies", "org", ".*", 3, map[string]any{"delivery-limit": 9}) },
			Config:    kept, ConfigPlanChecks: unchanged,
		},
		// A policy that would take precedence is an error.
		resource.TestStep{
			PreConfig:   func() { putPolicy(t, b, "policies", "org", ".*", 1000, map[string]any{"delivery-limit": 9}) },
			Config:      kept,
			ExpectError: regexp.MustCompile(`(?s)higher-priority policy overrides the pipeline's.*policy_priority = 1001`),
		},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, `policy_priority = 1001`, `work_queues = { "work" = { policy_definition_json = jsonencode({ "queue-leader-locator" = "balanced", "expires" = null }) } }`)},
	)
}

// A policy of the pipeline can turn a length limit against the queue's publishers, or against other queues' retries.
func TestAccEveryRelease_BoundedWorkQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work bounded", "quorum", map[string]any{"x-max-length": 5})
	b.DeclareQueue(t, "work rejecting", "quorum", map[string]any{"x-max-length": 5, "x-overflow": "reject-publish"})
	b.DeclareQueue(t, "work classic", "classic", map[string]any{"x-max-length": 5})
	putPolicy(t, b, "policies", "org", "^work classic$", 3, map[string]any{"overflow": "reject-publish"})
	one := func(queue string) string { return pipelineHCL(b, `delays = ["5s"]`, `work_queues = { `+queue+` }`) }
	acceptQuickly(t, b,
		resource.TestStep{Config: one(`"work bounded" = {}`), ExpectError: regexp.MustCompile(`(?s)Length limit.*"work bounded" = \{ dead_letter_strategy = "at-most-once" \}`)},
		resource.TestStep{Config: one(`"work rejecting" = {}, "work bounded" = { dead_letter_strategy = "at-most-once" }`), ExpectError: regexp.MustCompile(`(?s)would stop all retries.*"overflow" =\s+"drop-head"`)},
		resource.TestStep{Config: one(`"work classic" = { type = "classic", policy_definition_json = jsonencode({ overflow = "reject-publish" }) }`), ExpectError: regexp.MustCompile(`(?s)lost at a full work queue.*"reject-publish-dlx"`)},
		resource.TestStep{
			Config:      one(`"work bounded" = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ overflow = "reject-publish" }) }, "work rejecting" = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ overflow = "drop-head" }) }`),
			ExpectError: regexp.MustCompile(`would stop all retries`),
		},
		resource.TestStep{Config: one(`
      "work bounded"   = { dead_letter_strategy = "at-most-once" }
      "work rejecting" = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ overflow = "drop-head" }) }
      "work classic"   = { type = "classic", policy_definition_json = jsonencode({ overflow = "reject-publish-dlx" }) }`)},
		// Messages that each queue displaces arrive in the pipeline.
		resource.TestStep{
			PreConfig: func() {
				for _, queue := range []string{"work bounded", "work rejecting"} {
					for range 8 {
						b.Publish(t, "", queue, persistent(queue))
					}
				}
				emptyInbox(t, b, 6)
			},
			RefreshState: true,
		},
		resource.TestStep{Config: one(``)},
	)
}

func TestAccEveryRelease_PoliciesOfOthersOnOwnQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`)
	putPolicy(t, b, "operator-policies", "op", `^orders\.`, 1, map[string]any{"message-ttl": 200})
	acceptQuickly(t, b,
		resource.TestStep{Config: config, ExpectError: regexp.MustCompile(`(?s)Operator policy on the pipeline's own queue.*message-ttl`)},
		resource.TestStep{
			PreConfig: func() {
				deleted("operator-policies", "op")(t, b)
				putPolicy(t, b, "policies", "org", `.*`, 1, map[string]any{"max-length": 1, "message-ttl": 100, "expires": 1000})
			},
			Config: config,
		},
		// The pipeline's policy keeps the organisation's policy from the messages in its queues.
		resource.TestStep{
			PreConfig: func() {
				for range 3 {
					b.Publish(t, "orders.failed", "", persistent("parked"))
				}
				awaitReported(t, b, "orders.failed", "policy", "retry/orders/queues")
			},
			Config: config, ConfigPlanChecks: unchanged,
		},
		resource.TestStep{
			PreConfig: func() {
				for i := range 3 {
					if _, ok := b.Get(t, "orders.failed"); !ok {
						t.Errorf("message %d is gone", i)
					}
				}
				acctest.AwaitCount(t, b, "orders.failed", 0)
				deleted("policies", "org")(t, b)
			},
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address,
				tfjsonpath.New("topology").AtMapKey("policies"), knownvalue.MapSizeExact(1))},
		},
	)
}

// If an application re-creates its queue as a classic queue, the policy for quorum queues no longer applies, and the next
// plan reports that.
func TestAccEveryRelease_QueueOfAnotherTypeIsAnError(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	config := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = {} }`)
	acceptQuickly(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				deleted("queues", "work")(t, b)
				b.DeclareQueue(t, "work", "classic", nil)
			},
			Config:      config,
			ExpectError: regexp.MustCompile(`(?s)another type.*type = "classic"`),
		},
		resource.TestStep{
			Config: pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = { type = "classic" } }`),
			Check: func(*terraform.State) error {
				awaitReported(t, b, "work", "policy", "retry/orders/classic-queues")
				reject(t, b, "work", "rejected")
				emptyInbox(t, b, 1)
				return nil
			},
		},
	)
}

func TestAcc_AttachByArguments(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	config := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = { attach = "arguments" }, "work2" = { attach = "arguments", declare = true, dead_letter_strategy = "at-most-once" } }`)
	acceptQuickly(t, b,
		resource.TestStep{Config: config, ExpectError: regexp.MustCompile(`(?s)not declared for the pipeline.*x-dead-letter-exchange = "orders\.dlx" is missing.*x-dead-letter-strategy = "at-least-once"`)},
		resource.TestStep{
			PreConfig: func() {
				deleted("queues", "work")(t, b)
				b.DeclareQueue(t, "work", "quorum", map[string]any{"x-dead-letter-exchange": "orders.dlx", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
			},
			Config: config,
		},
		resource.TestStep{
			PreConfig: func() {
				reject(t, b, "work", "rejected")
				reject(t, b, "work2", "rejected")
				emptyInbox(t, b, 2)
			},
			Config: config, ConfigPlanChecks: unchanged,
		},
		isImported(b),
	)
}
