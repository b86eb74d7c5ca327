package retryattachment_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const address = "rabbitmq_retry_attachment.work"

// pipeline is the configuration of a pipeline "orders".
func pipeline(b *brokertest.Broker) string { return with(b, "orders", "") }

// with is the configuration of a pipeline with further lines.
func with(b *brokertest.Broker, name, lines string) string {
	return fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" %q {\n  name = %q\n  vhost = %q\n  delays = [\"1s\"]\n  %s\n}\n", name, name, b.Vhost, lines)
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

// comesTo waits for a message, and takes it.
func comesTo(t *testing.T, b *brokertest.Broker, queue string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if _, ok := b.Get(t, queue); !ok {
			return fmt.Errorf("nothing in %s", queue)
		}
		return nil
	})
}

func importID(b *brokertest.Broker) string { return url.PathEscape(b.Vhost) + "/orders/work" }

// isImported imports the attachment, and compares it with the state.
func isImported(b *brokertest.Broker) resource.TestStep {
	return resource.TestStep{
		ResourceName: address, ImportState: true, ImportStateId: importID(b),
		ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "queue",
	}
}

var empty = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

// A queue that is attached to a pipeline whose consumers count uses that pipeline's engine.
func TestAccEveryRelease_AttachmentToAPipelineThatConsumersCount(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	b.Needs(t, brokertest.Engine("consumer"))
	counting := strings.Replace(pipeline(b), "delays", "engine = \"consumer\"\n  delays", 1)
	config := counting + attachment(b, reference, `engine = "consumer"`)
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: counting},
		resource.TestStep{Config: counting + attachment(b, reference, ""), ExpectError: regexp.MustCompile(`(?s)Pipeline with another engine.*Write\s+engine\s+=\s+"consumer"`)},
		resource.TestStep{Config: counting + attachment(b, reference, `engine = "native"`), ExpectError: regexp.MustCompile(`Queue cannot be attached from outside`)},
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { rejectOne(t, b); comesTo(t, b, "work") },
			Config:    config, ConfigPlanChecks: empty,
		},
		isImported(b),
	)
}

// If a pipeline's definition cannot be read, its engine is not known. A plan that also has the pipeline restores the
// definition.
func TestAccEveryRelease_AttachmentToAPipelineThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	damage := func() {
		b.Unbind(t, "orders.failed", "q", "orders.failed")
		b.Bind(t, topology.Binding{Source: "orders.failed", Destination: "orders.failed", Arguments: topology.Arguments{"retry-definition": "{"}})
	}
	config := pipeline(b) + attachment(b, reference, "")
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
			Config: config,
		},
		resource.TestStep{PreConfig: damage, Config: config},
	)
}

// If pipeline and attachment are in one configuration, neither adopts the other's objects.
func TestAccEveryRelease_AttachmentLife(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	config := pipeline(b) + attachment(b, reference, "")
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: config, ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("id"), knownvalue.StringExact(importID(b)))}},
		resource.TestStep{PreConfig: func() { rejectOne(t, b); comesTo(t, b, "orders.inbox") }, Config: config, ConfigPlanChecks: empty},
		isImported(b),
		// Missing objects are shown and repaired.
		resource.TestStep{
			PreConfig:        func() { b.Call(t, http.MethodDelete, b.Path("policies", "retry/orders/attachment/work"), nil, nil) },
			Config:           config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate), plancheck.ExpectResourceAction("rabbitmq_retry_pipeline.orders", plancheck.ResourceActionNoop)}},
		},
		resource.TestStep{Config: pipeline(b) + attachment(b, reference, `dead_letter_strategy = "at-most-once"`)},
		// A change of the pipeline does not affect the attachment.
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{Config: pipeline(b), ConfigPlanChecks: empty},
	)
}

// The platform's state has the pipeline, and the application's state has the attachment.
func TestAcc_PipelineStaysAsLongAsQueuesAreAttached(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
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

// attachByHand creates the objects of an attachment that is in another state.
func attachByHand(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Call(t, http.MethodPut, b.Path("queues", "other"), map[string]any{"durable": true}, nil)
	b.Bind(t, topology.Binding{Source: "orders.return", Destination: "other", RoutingKey: "return:other", Arguments: topology.Arguments{"retry-attachment": true}})
}

func detachByHand(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Call(t, http.MethodDelete, b.Path("queues", "other"), nil, nil)
}

// A quorum queue's pending dead letters are lost with its policy, so the detachment is refused.
func TestAccEveryRelease_DetachmentRefusesWhileDeadLettersAreHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	config := pipeline(b) + attachment(b, reference, "")
	acctest.Run(t, acctest.Times(),
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				unbindTargets(t, b)
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

// A queue moves from a pipeline's configuration to an attachment without a gap. The pipeline releases a queue that it has
// declared, and does not delete it.
func TestAcc_HandOver(t *testing.T) {
	t.Parallel()
	for name, workQueues := range map[string]string{"attached": "{ work = {} }", "declared": "{ work = { declare = true } }"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			if name == "attached" {
				b.DeclareQueue(t, "work", "quorum", nil)
			}
			within, attached := with(b, "orders", "work_queues = "+workQueues), attachment(b, reference, "")
			acctest.Run(t, acctest.Quick(),
				resource.TestStep{Config: within},
				resource.TestStep{Config: within + attached},
				resource.TestStep{Config: pipeline(b) + attached},
				resource.TestStep{
					PreConfig: func() { rejectOne(t, b); comesTo(t, b, "orders.inbox") },
					Config:    pipeline(b) + attached, ConfigPlanChecks: empty,
				},
			)
		})
	}
}

func TestAcc_WrongAttachments(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", map[string]any{"x-max-length": 5})
	for _, test := range []struct{ lines, said string }{
		{`attach = "arguments"`, `not declared for the pipeline`},
		{`policy_priority = 0`, `must be at least 1`},
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

// The policy is written and the binding is refused. By then, the queue holds a dead letter, which would be lost with the
// policy. So the policy stays, and the import that the error names finds it.
func TestAcc_FailedAttachmentThatHoldsMessagesIsImported(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	user, password := b.User(t, "policymaker", ".*", `^orders\.`, ".*")
	var once sync.Once
	endpoint := b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/e/orders.return/q/work") {
			once.Do(func() { holdOne(t, b) })
		}
	})
	withUser := fmt.Sprintf("provider \"rabbitmq\" {\n  endpoint = %q\n  username = %q\n  password = %q\n}\n", endpoint, user, password)
	config := pipeline(b) + attachment(b, reference, "")
	acctest.Run(t, acctest.Times(),
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{
			Config: withUser + config,
			ExpectError: regexp.MustCompile(`(?s)Cannot create the attachment.*answered 401.*the\s+created\s+objects\s+stay.*work: 1 dead letter` +
				`.*terraform import rabbitmq_retry_attachment\.<name> '` + regexp.QuoteMeta(importID(b)) + `'`),
		},
		resource.TestStep{Config: config, ResourceName: address, ImportState: true, ImportStateId: importID(b), ImportStatePersist: true},
		resource.TestStep{
			Config:           config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)}},
		},
		// The broker sends held messages only after minutes, and a destroy is refused until then.
		resource.TestStep{
			PreConfig: func() {
				eventuallyReported(t, b, reported{Policy: "retry/orders/attachment/work", Held: 1})
				b.Call(t, http.MethodDelete, b.Path("queues", "work"), nil, nil)
				b.DeclareQueue(t, "work", "quorum", nil)
			},
			Config: config,
		},
	)
}

// unbindTargets leaves no queue for dead letters.
func unbindTargets(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.Unbind(t, "orders.dlx", "q", "orders.inbox")
	b.Unbind(t, "orders.failed", "q", "orders.failed")
}

// holdOne makes the queue hold a dead letter without a destination.
func holdOne(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	unbindTargets(t, b)
	eventuallyReported(t, b, reported{Policy: "retry/orders/attachment/work"})
	rejectOne(t, b)
	eventuallyReported(t, b, reported{Policy: "retry/orders/attachment/work", Held: 1})
}

// reported is the broker's report on a queue, some seconds late.
type reported struct {
	Policy string `json:"policy"`
	Held   int    `json:"messages_dlx"`
}

func eventuallyReported(t *testing.T, b *brokertest.Broker, want reported) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var found reported
		if b.Call(t, http.MethodGet, b.Path("queues", "work"), nil, &found); found != want {
			return fmt.Errorf("got %+v", found)
		}
		return nil
	})
}
