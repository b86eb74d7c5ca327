package retryattachment_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

const address = "rabbitmq_retry_attachment.work"

func pipeline(b *brokertest.Broker) string {
	return fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"orders\" {\n  name = \"orders\"\n  vhost = %q\n  delays = [\"1s\"]\n}\n", b.Vhost)
}

func attachment(b *brokertest.Broker, pipeline, lines string) string {
	return fmt.Sprintf("resource \"rabbitmq_retry_attachment\" \"work\" {\n  pipeline = %s\n  vhost = %q\n  queue = \"work\"\n  %s\n}\n", pipeline, b.Vhost, lines)
}

const reference = "rabbitmq_retry_pipeline.orders.name"

func rejectOne(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Publish(t, "", "work", message())
	ch := b.Channel(t)
	d, ok, err := ch.Get("work", false)
	if err != nil || !ok {
		t.Fatalf("get: %v, %v", ok, err)
	}
	require.NoError(t, d.Reject(false))
}

func message() amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("rejected")}
}

func takeFromInbox(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if _, ok := b.Get(t, "orders.inbox"); !ok {
			return fmt.Errorf("nothing in the inbox")
		}
		return nil
	})
}

var empty = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

// A queue is attached to a pipeline whose consumers count, with the engine of that pipeline and no other.
func TestAccEveryRelease_AttachmentToAPipelineThatConsumersCount(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	if !b.VersionAtLeast("4.0") {
		t.Skip("not supported by this release")
	}
	b.DeclareQueue(t, "work", "quorum", nil)
	counting := strings.Replace(pipeline(b), "delays", "engine = \"consumer\"\n  delays", 1)
	config := counting + attachment(b, reference, `engine = "consumer"`)
	importID := url.PathEscape(b.Vhost) + "/orders/work"
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: counting},
		resource.TestStep{Config: counting + attachment(b, reference, ""), ExpectError: regexp.MustCompile(`(?s)Pipeline of another engine.*Write\s+engine\s+=\s+"consumer"`)},
		resource.TestStep{Config: counting + attachment(b, reference, `engine = "native"`), ExpectError: regexp.MustCompile(`Queue cannot be attached from outside`)},
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				rejectOne(t, b)
				brokertest.Eventually(t, func() error {
					if _, ok := b.Get(t, "work"); !ok {
						return fmt.Errorf("the message is not back")
					}
					return nil
				})
			},
			Config: config, ConfigPlanChecks: empty,
		},
		resource.TestStep{Config: config, ResourceName: address, ImportState: true, ImportStateId: importID, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "queue"},
	)
}

// Nobody can tell the engine of a pipeline whose definition cannot be read. The plan that has the pipeline, too, restores it.
func TestAccEveryRelease_AttachmentToAPipelineThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	damage := func() {
		unbindAll(t, b, "orders.failed")
		b.Call(t, http.MethodPost, b.Path("bindings", "e", "orders.failed", "q", "orders.failed"),
			map[string]any{"arguments": map[string]any{"retry-definition": "{"}}, nil)
	}
	config := pipeline(b) + attachment(b, reference, "")
	restored := resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{
			PreConfig: func() {
				damage()
				acctest.Run(t, acctest.Quick(), resource.TestStep{
					Config:      attachment(b, `"orders"`, ""),
					ExpectError: regexp.MustCompile(`(?s)The pipeline's engine is not known.*retry-definition.*cannot\s+be\s+read`),
				})
			},
			Config: config, ConfigPlanChecks: restored,
		},
		resource.TestStep{PreConfig: damage, Config: config, ConfigPlanChecks: restored},
	)
}

// Pipeline and attachment in one configuration: neither takes the other's objects for its own.
func TestAccEveryRelease_AttachmentLife(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	config := pipeline(b) + attachment(b, reference, "")
	importID := url.PathEscape(b.Vhost) + "/orders/work"
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: config, ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("id"), knownvalue.StringExact(importID))}},
		resource.TestStep{PreConfig: func() { rejectOne(t, b); takeFromInbox(t, b) }, Config: config, ConfigPlanChecks: empty},
		resource.TestStep{Config: config, ResourceName: address, ImportState: true, ImportStateId: importID, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "queue"},
		// What goes missing is shown and repaired.
		resource.TestStep{
			PreConfig: func() { b.Call(t, http.MethodDelete, b.Path("policies", "retry/orders/attachment/work"), nil, nil) },
			Config:    config,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate), plancheck.ExpectResourceAction("rabbitmq_retry_pipeline.orders", plancheck.ResourceActionNoop)},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		},
		resource.TestStep{Config: pipeline(b) + attachment(b, reference, `dead_letter_strategy = "at-most-once"`)},
		// A change of the pipeline leaves the attachment alone.
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{Config: pipeline(b), ConfigPlanChecks: empty},
	)
}

// Two states: the platform's, which has the pipeline, and the application's.
func TestAcc_PipelineStaysAsLongAsQueuesAreAttached(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: attachment(b, `"orders"`, ""), ExpectError: regexp.MustCompile(`Pipeline does not exist`)},
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{
			PreConfig: func() {
				// The application's team applies its own configuration.
				acctest.Run(t, acctest.Quick(),
					resource.TestStep{Config: attachment(b, `"orders"`, "")},
					resource.TestStep{Config: attachment(b, `"orders"`, ""), ConfigPlanChecks: empty},
					resource.TestStep{Config: attachment(b, `"orders"`, ""), PreConfig: func() { attachByHand(t, b) }},
				)
			},
			Config:      pipeline(b),
			Destroy:     true,
			ExpectError: regexp.MustCompile(`(?s)Queues are attached.*other`),
		},
		resource.TestStep{PreConfig: func() { detachByHand(t, b) }, Config: pipeline(b)},
	)
}

// attachByHand leaves behind what an attachment in somebody else's state would.
func attachByHand(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Call(t, http.MethodPut, b.Path("queues", "other"), map[string]any{"durable": true}, nil)
	b.Call(t, http.MethodPost, b.Path("bindings", "e", "orders.return", "q", "other"), map[string]any{"routing_key": "return:other", "arguments": map[string]any{"retry-attachment": true}}, nil)
}

func detachByHand(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Call(t, http.MethodDelete, b.Path("queues", "other"), nil, nil)
}

// Dead letters that a quorum queue still holds go with its policy: the detachment is refused.
func TestAccEveryRelease_DetachmentRefusesWhileDeadLettersAreHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	config := pipeline(b) + attachment(b, reference, "")
	acctest.Run(t, acctest.Times(),
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				for _, exchange := range []string{"orders.dlx", "orders.failed"} {
					unbindAll(t, b, exchange)
				}
				rejectOne(t, b)
			},
			Config:      pipeline(b),
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*work: 1 dead letter`),
		},
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodDelete, b.Path("queues", "work"), nil, nil)
				b.DeclareQueue(t, "work", "quorum", nil)
			},
			Config: config,
		},
		resource.TestStep{PreConfig: func() { purge(t, b, "orders.inbox") }, Config: pipeline(b)},
	)
}

func purge(t *testing.T, b *brokertest.Broker, queue string) {
	t.Helper()
	b.Call(t, http.MethodDelete, b.Path("queues", queue)+"/contents", nil, nil)
}

func unbindAll(t *testing.T, b *brokertest.Broker, exchange string) {
	t.Helper()
	_, response := b.Request(t, http.MethodGet, b.Path("exchanges", exchange)+"/bindings/source", nil)
	var bindings []struct {
		Destination string `json:"destination"`
		Key         string `json:"properties_key"`
	}
	require.NoError(t, json.Unmarshal(response, &bindings))
	for _, binding := range bindings {
		b.Call(t, http.MethodDelete, b.Path("bindings", "e", exchange, "q", binding.Destination, binding.Key), nil, nil)
	}
}

// A queue goes from a pipeline's configuration to an attachment without a moment between.
func TestAcc_HandOver(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	within := fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"orders\" {\n  name = \"orders\"\n  vhost = %q\n  delays = [\"1s\"]\n  work_queues = { work = {} }\n}\n", b.Vhost)
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: within},
		resource.TestStep{Config: within + attachment(b, reference, "")},
		resource.TestStep{Config: pipeline(b) + attachment(b, reference, "")},
		resource.TestStep{PreConfig: func() { rejectOne(t, b); takeFromInbox(t, b) }, Config: pipeline(b) + attachment(b, reference, ""), ConfigPlanChecks: empty},
	)
}

func TestAcc_WrongAttachments(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", map[string]any{"x-max-length": 5})
	for _, test := range []struct{ lines, said string }{
		{`type = "stream"`, `must be one of: \["quorum" "classic"\]`},
		{`attach = "magic"`, `must be one of: \["policy" "arguments"\]`},
		{`attach = "arguments"`, `not declared for the pipeline`},
		{`policy_priority = 0`, `must be at least 1`},
		{`failed_queue = { declare = false }`, `attribute "name"\s+is\s+required`},
		{`policy_definition_json = "x"`, `(?i)json`},
		{`policy_definition_json = jsonencode({ "dead-letter-exchange" = "x" })`, `the pipeline sets it itself`},
		{``, `dead_letter_strategy = "at-most-once"`},
		{`type = "classic"`, `Work queue has another type`},
	} {
		t.Run(test.said, func(t *testing.T) {
			t.Parallel()
			acctest.Run(t, acctest.Quick(), resource.TestStep{Config: attachment(b, `"orders"`, test.lines), ExpectError: regexp.MustCompile(`(?s)` + test.said)})
		})
	}
}
