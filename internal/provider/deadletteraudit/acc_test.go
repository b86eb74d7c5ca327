package deadletteraudit_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const address = "data.rabbitmq_dead_letter_audit.all"

func config(b *brokertest.Broker, lines string) string {
	return fmt.Sprintf("data \"rabbitmq_dead_letter_audit\" \"all\" {\n  vhost = %q\n  %s\n}\n", b.Vhost, lines)
}

func value(name string, want knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(name), want)
}

// faulty makes a queue whose dead-letter exchange is missing, and a queue that dead-letters to itself.
func faulty(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	b.DeclareQueue(t, "work", "classic", map[string]any{"x-dead-letter-exchange": "missing"})
	b.DeclareQueue(t, "other", "classic", map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parked"})
	b.DeclareQueue(t, "parked", "classic", map[string]any{"x-message-ttl": 60000})
}

func TestAcc_FindsFaults(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "audit/faults %")
	faulty(t, b)
	missing := knownvalue.ObjectPartial(map[string]knownvalue.Check{
		"severity": knownvalue.StringExact("error"),
		"rule":     knownvalue.StringExact("dead-letter-exchange-missing"),
		"object": knownvalue.ObjectExact(map[string]knownvalue.Check{
			"kind": knownvalue.StringExact("queue"), "name": knownvalue.StringExact("work"),
		}),
		"message": knownvalue.StringRegexp(regexp.MustCompile(`"missing" of queue "work" does not exist`)),
		"remedy":  knownvalue.StringRegexp(regexp.MustCompile("Create the exchange")),
	})
	acctest.RunTerraform(t, acctest.Quick(),
		resource.TestStep{Config: config(b, ""), ConfigStateChecks: []statecheck.StateCheck{
			value("error_count", knownvalue.Int64Exact(1)),
			value("warning_count", knownvalue.Int64Exact(1)),
			value("findings", knownvalue.ListPartial(map[int]knownvalue.Check{0: missing, 1: knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"rule": knownvalue.StringExact("parking-queue-ttl"),
			})})),
		}},
		resource.TestStep{Config: config(b, `ignore = ["parking-queue-ttl"]`), ConfigStateChecks: []statecheck.StateCheck{
			value("warning_count", knownvalue.Int64Exact(0)),
			value("findings", knownvalue.ListExact([]knownvalue.Check{missing})),
		}},
	)
}

func TestAcc_FindsADamagedDefinition(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.Call(t, http.MethodPut, b.Path("exchanges", "orders.failed"), map[string]any{"type": "fanout", "durable": true}, nil)
	b.DeclareQueue(t, "orders.failed", "classic", nil)
	b.Call(t, http.MethodPost, b.Path("bindings", "e", "orders.failed", "q", "orders.failed"), map[string]any{"arguments": map[string]any{"retry-definition": 7}}, nil)
	acctest.RunTerraform(t, acctest.Quick(), resource.TestStep{
		Config: config(b, `ignore = ["pipeline-inbox-unbound"]`),
		ConfigStateChecks: []statecheck.StateCheck{value("findings", knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectPartial(map[string]knownvalue.Check{
			"severity": knownvalue.StringExact("warning"),
			"rule":     knownvalue.StringExact("pipeline-definition-unreadable"),
			"message":  knownvalue.StringRegexp(regexp.MustCompile(`the binding from "orders.failed" to "orders.failed" is no text`)),
			"remedy":   knownvalue.StringRegexp(regexp.MustCompile("Run terraform apply")),
		})}))},
	})
}

// The audit sees the objects that the apply has created, although the vhost was listed for the plan.
func TestAcc_HealthyPipelineHasNoFinding(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		b := brokertest.New(t)
		b.DeclareQueue(t, "work", queueType, map[string]any{"x-dead-letter-exchange": "orders.dlx"})
		made := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name        = "orders"
  vhost       = %q
  delays      = ["5s", "1m"]
  queue_type  = %q
  work_queues = { work = { type = %q }, mine = { type = %q, declare = true } }
}
`, b.Vhost, queueType, queueType, queueType)
		none := []statecheck.StateCheck{value("findings", knownvalue.ListSizeExact(0)), value("error_count", knownvalue.Int64Exact(0)), value("warning_count", knownvalue.Int64Exact(0))}
		acctest.RunTerraform(t, acctest.Quick(),
			resource.TestStep{Config: config(b, ""), ConfigStateChecks: []statecheck.StateCheck{value("error_count", knownvalue.Int64Exact(1))}},
			resource.TestStep{Config: made + config(b, "depends_on = [rabbitmq_retry_pipeline.orders]"), ConfigStateChecks: none},
		)
	})
}

func TestAcc_UnservedInbox(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	configuration := config(b, "depends_on = [rabbitmq_retry_pipeline.orders]") + fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name          = "orders"
  vhost         = %q
  delays        = ["5s"]
  force_destroy = true
}
`, b.Vhost)
	waits := func() {
		b.Publish(t, "orders.dlx", "", amqp.Publishing{Body: []byte("1")})
		brokertest.Eventually(t, func() error {
			var inbox struct{ Messages, Consumers *int }
			b.Call(t, http.MethodGet, b.Path("queues", "orders.inbox"), nil, &inbox)
			if inbox.Messages == nil || *inbox.Messages == 0 || inbox.Consumers == nil {
				return errors.New("the statistics lag")
			}
			return nil
		})
	}
	acctest.RunTerraform(t, acctest.Quick(),
		resource.TestStep{Config: configuration, ConfigStateChecks: []statecheck.StateCheck{value("findings", knownvalue.ListSizeExact(0))}},
		resource.TestStep{PreConfig: waits, Config: configuration, ConfigStateChecks: []statecheck.StateCheck{
			value("findings", knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"severity": knownvalue.StringExact("warning"),
				"rule":     knownvalue.StringExact("inbox-unserved"),
				"message":  knownvalue.StringRegexp(regexp.MustCompile(`"orders.inbox" has no consumer`)),
			})})),
		}},
	)
}

func TestAcc_WrongInput(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	acctest.RunTerraform(t, acctest.Quick(),
		resource.TestStep{Config: config(b, `ignore = ["parking-queue-tttl"]`), ExpectError: regexp.MustCompile(`(?s)Unknown rule.*parking-queue-tttl.*dead-letter-cycle`)},
		resource.TestStep{Config: `data "rabbitmq_dead_letter_audit" "all" { vhost = "no such vhost" }`, ExpectError: regexp.MustCompile(`(?s)Vhost does not exist.*no such vhost`)},
	)
}

// An audit needs only a user whom the management API admits.
func TestAcc_NeedsNoMoreThanToSeeTheVhost(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	faulty(t, b)
	user, password := b.User(t, "management", "^$", "^$", "^$")
	withUser := fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password)
	acctest.RunTerraform(t, acctest.Quick(), resource.TestStep{Config: withUser + config(b, ""), ConfigStateChecks: []statecheck.StateCheck{value("error_count", knownvalue.Int64Exact(1))}})
}
