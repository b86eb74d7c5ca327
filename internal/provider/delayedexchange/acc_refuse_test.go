package delayedexchange_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// The plan refuses impossible values at their attribute, and creates nothing.
func TestAcc_BadInputs(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	var steps []resource.TestStep
	for _, c := range []struct {
		config, says string
	}{
		{exchangeHCL(b, "a/b", `max_delay = "1s"`), "Reserved character in the delayed exchange's name.*name = "},
		{`resource "rabbitmq_delayed_exchange" "e" {` + "\n" + `name = "a"` + "\n" + `vhost = ""` + "\n" + `max_delay = "1s"` + "\n}\n", "vhost = .*vhost: the name is empty"},
		{exchangeHCL(b, "amq.a", `max_delay = "1s"`), "Reserved delayed exchange name"},
		{`resource "rabbitmq_delayed_exchange" "e" {` + "\n" + `name = ""` + "\n" + `max_delay = "1s"` + "\n}\n", "Empty delayed exchange name"},
		{`resource "rabbitmq_delayed_exchange" "e" {` + "\n" + `name = "a\nb"` + "\n" + `max_delay = "1s"` + "\n}\n", "Line break in the delayed exchange's name"},
		{exchangeHCL(b, strings.Repeat("n", 240), `max_delay = "1s"`), "Name too long"},
		{exchangeHCL(b, "events", `max_delay = "1"`), "Invalid duration.*max_delay = "},
		{exchangeHCL(b, "events", `max_delay = "0s"`), "at least \"1ms\""},
		{exchangeHCL(b, "events", `max_delay = "1d"`), "hours are the longest unit"},
		{exchangeHCL(b, "events", `max_delay = "-1h"`), "remove the minus sign"},
		{exchangeHCL(b, "events", `max_delay = "50ms"`), "Write a shorter precision \\(the default is \"100ms\"\\) or a longer max_delay"},
		{exchangeHCL(b, "events", `max_delay = "100000h"`), "ten years"},
		{exchangeHCL(b, "events", `max_delay = "87600h"`, `precision = "70000h"`), "Precision out of range.*precision = "},
		{exchangeHCL(b, "events", `max_delay = "1s"`, `precision = "2s"`), "longer than max_delay"},
		{exchangeHCL(b, "events", `max_delay = "1s"`, `precision = "1.5ms"`), "finer than a millisecond"},
		{exchangeHCL(b, "events", `max_delay = "1s"`, `type = "x-delayed-message"`), "type = .*write one of these: \\[\"topic\" \"direct\" \"fanout\" \"headers\"\\]"},
		{exchangeHCL(b, "events", `max_delay = "1s"`, `type = "random"`), "type = .*write one of these"},
		{exchangeHCL(b, "events", `max_delay = "1s"`, `policy_priority = 0`), "must be at least 1"},
		{exchangeHCL(b, "events", `max_delay = "1s"`, `timeouts = { delete = "-1s" }`), "timeouts.delete: write a duration of 0 or more"},
	} {
		steps = append(steps, resource.TestStep{Config: c.config, PlanOnly: true, ExpectError: says(c.says)})
	}
	accept(t, b, acctest.Quick(), steps...)
}

// If two new owners would create the same objects, one is created.
func TestAcc_TwoNewOwnersOfOneObject(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(*brokertest.Broker) string{
		"one name": func(b *brokertest.Broker) string {
			events := exchangeHCL(b, "events", `max_delay = "1s"`)
			return events + strings.Replace(exchangeHCL(b, "events", `max_delay = "2s"`), `"events" {`, `"again" {`, 1)
		},
		"two delayed exchanges": func(b *brokertest.Broker) string {
			return exchangeHCL(b, "events", `max_delay = "1s"`) + exchangeHCL(b, "events.deliver", `max_delay = "1s"`)
		},
		"a pipeline's exchange": func(b *brokertest.Broker) string {
			return exchangeHCL(b, "orders.dlx", `max_delay = "1s"`) + pipelineHCL(b, "orders")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			accept(t, b, acctest.Quick(), resource.TestStep{Config: config(b), ExpectError: says(`Objects exist already|Policy .* overrides`)})
		})
	}
}

func pipelineHCL(b *brokertest.Broker, name string) string {
	return "resource \"rabbitmq_retry_pipeline\" \"p\" {\n  name = \"" + name + "\"\n  vhost = \"" + b.Vhost + "\"\n  delays = [\"5s\"]\n}\n"
}

// Existing objects are never adopted, with or without an owner.
func TestAcc_ExistingObjectsAreNotAdopted(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := exchangeHCL(b, "events", `max_delay = "1s"`, `precision = "1s"`)
	remove := func(kind, name string) { b.Call(t, http.MethodDelete, b.Path(kind, name), nil, nil) }
	accept(t, b, acctest.Quick(),
		resource.TestStep{
			PreConfig: func() { b.DeclareQueue(t, "events.delay.1s.0", "quorum", nil) },
			Config:    config, ExpectError: says(`Objects exist already.*queue "events.delay.1s.0"`),
		},
		resource.TestStep{
			PreConfig: func() {
				remove("queues", "events.delay.1s.0")
				b.Call(t, http.MethodPut, b.Path("exchanges", "events"), map[string]any{"type": "topic"}, nil)
				b.DeclareQueue(t, "work", "quorum", nil)
				bind(t, b, "events", "work", "#", nil) // not a queue that gets delayed messages at once
			},
			Config: config, ExpectError: says(`Objects exist already.*exchange "events"`),
		},
		resource.TestStep{PreConfig: func() { remove("exchanges", "events") }, Config: config},
	)
}

// A queue that is bound to the exchange itself would get every message at once. A queue that is bound to a level, or a
// binding to a level, would disturb the waiting messages.
func TestAcc_BindingsOfOthers(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := exchangeHCL(b, "events", `max_delay = "1s"`, `precision = "1s"`)
	b.DeclareQueue(t, "work", "quorum", nil)
	accept(t, b, acctest.Quick(),
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { bind(t, b, "events", "work", "", nil) },
			Config:    config, ExpectError: says(`Binding that gets messages at once.*Bind to the exchange "events.deliver" instead`),
		},
		resource.TestStep{
			PreConfig: func() {
				b.Unbind(t, "events", "q", "work")
				bind(t, b, "amq.topic", "events.delay.1s.0", "#", nil)
			},
			Config: config, ExpectError: says(`Binding that bypasses the sidecar`),
		},
		resource.TestStep{
			PreConfig: func() { b.Unbind(t, "amq.topic", "q", "events.delay.1s.0") },
			Config:    config, ConfigPlanChecks: empty,
		},
	)
}

// force_destroy deletes messages, but not the bindings of others to the queues.
func TestAcc_ForceTakesNoBindings(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	c := eventsCore(b, map[string]any{"max_delay": "1s", "precision": "1s", "force_destroy": true})
	c.MustApply(t)
	bind(t, b, "amq.topic", "events.delay.unrouted", "#", nil)
	before := acctest.List(t, b)
	if err := c.Destroy(t.Context()); err == nil || !strings.Contains(err.Error(), "amq.topic -> events.delay.unrouted") {
		t.Errorf("got %v", err)
	}
	require.NoError(t, before.RequireSame(acctest.List(t, b)))
	b.Unbind(t, "amq.topic", "q", "events.delay.unrouted")
	if err := c.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// Policies of others that would lose or misdirect waiting messages are refused, as for a pipeline's own queues.
func TestAccEveryRelease_PoliciesOfOthers(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := exchangeHCL(b, "events", `max_delay = "1s"`, `precision = "1s"`)
	policy := func(kind, pattern, applyTo string, priority int, definition map[string]any) func() {
		return func() {
			b.Call(t, http.MethodPut, b.Path(kind, "foreign"), map[string]any{
				"pattern": pattern, "apply-to": applyTo, "priority": priority, "definition": definition,
			}, nil)
		}
	}
	accept(t, b, acctest.Quick(),
		resource.TestStep{
			PreConfig: policy("policies", "^events", "queues", 2000, map[string]any{"message-ttl": 5}),
			Config:    config, ExpectError: says(`higher-priority policy overrides the delayed exchange's.*policy_priority = 2001`),
		},
		resource.TestStep{
			PreConfig: policy("policies", "1s", "exchanges", 0, map[string]any{"alternate-exchange": "amq.fanout"}),
			Config:    config, ExpectError: says(`policy gives the delayed exchange's exchange an alternate exchange`),
		},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodDelete, b.Path("policies", "foreign"), nil, nil)
				policy("operator-policies", "inbox$", "queues", 0, map[string]any{"max-length": 5})()
			},
			Config: config, ExpectError: says(`Operator policy on the delayed exchange's own queue`),
		},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodDelete, b.Path("operator-policies", "foreign"), nil, nil)
				policy("policies", ".*", "all", 999, map[string]any{"message-ttl": 1, "expires": 100})()
			},
			Config: config, // its own policy takes precedence
		},
		resource.TestStep{
			PreConfig: func() {
				time.Sleep(time.Second) // any message that would expire has expired
				b.Call(t, http.MethodDelete, b.Path("policies", "foreign"), nil, nil)
			},
			Config: config, ConfigPlanChecks: empty,
		},
	)
}

// A destroy or a change of type would delete the bindings of others, so both are refused and name the bindings.
func TestAcc_BoundDelayedExchangeStays(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	lines := []string{`max_delay = "1s"`, `precision = "1s"`}
	config, direct := exchangeHCL(b, "events", lines...), exchangeHCL(b, "events", append(lines, `type = "direct"`)...)
	b.DeclareQueue(t, "work", "quorum", nil)
	accept(t, b, acctest.Quick(),
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { bind(t, b, "events.deliver", "work", "mail.#", nil) },
			Config:    direct, ExpectError: says(`Bindings would mean something else.*events.deliver -> work \[mail.#\]`),
		},
		resource.TestStep{Config: config, Destroy: true, ExpectError: says(`Queues are bound to the delayed exchange.*events.deliver -> work \[mail.#\].*The delayed exchange was not deleted`)},
		resource.TestStep{Config: config, ConfigPlanChecks: empty},
		resource.TestStep{
			PreConfig: func() { b.Unbind(t, "events.deliver", "q", "work") },
			Config:    direct,
		},
	)
}

// The plan of a destroy or a replacement names the levels with waiting messages and the counts, and fails. So the bindings that would
// go first stay. It also fails while the inbox has messages.
func TestAccEveryRelease_DestroyWithWaitingMessagesIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := exchangeHCL(b, "events", `max_delay = "3h"`, `precision = "1h"`) + fmt.Sprintf(`
resource "rabbitmq_queue" "mails" {
  name  = "mails"
  vhost = %[1]q
}
resource "rabbitmq_binding" "due" {
  vhost       = %[1]q
  source      = rabbitmq_delayed_exchange.events.deliver_exchange
  destination = rabbitmq_queue.mails.name
  routing_key = "mail"
}
`, b.Vhost)
	refused := `Destroying the delayed exchange would lose messages.*events.delay.1h.0: 1 message.*events.delay.1h.1: 3 messages.*events.delay.inbox: 1 message`
	bound := func() {
		bindings, err := acctest.Client(t, b).BindingsFrom(t.Context(), b.Vhost, "events.deliver")
		require.NoError(t, err)
		require.Len(t, bindings, 1, "due messages have no route")
	}
	empty := func(queue string, count int) {
		for range count {
			if _, ok := b.Get(t, queue); !ok {
				t.Errorf("a message of %s is gone", queue)
			}
		}
		eventuallyReported(t, b, queue, 0)
	}
	acctest.RunTerraform(t, acctest.Times(),
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				for range 3 {
					delay(t, b, "events", 2*time.Hour, time.Hour, "mail", "later")
				}
				delay(t, b, "events", time.Hour, time.Hour, "mail", "sooner")
				b.Publish(t, "events", "mail", amqp.Publishing{DeliveryMode: amqp.Persistent})
				eventuallyReported(t, b, "events.delay.1h.1", 3)
				eventuallyReported(t, b, "events.delay.1h.0", 1)
				eventuallyReported(t, b, "events.delay.inbox", 1)
			},
			Config: config, Destroy: true,
			ExpectError: says(refused),
		},
		resource.TestStep{PreConfig: bound, Config: strings.Replace(config, `name = "events"`, `name = "moved"`, 1), ExpectError: says(refused)},
		resource.TestStep{
			PreConfig: func() {
				bound()
				empty("events.delay.1h.1", 3)
				empty("events.delay.1h.0", 1)
				empty("events.delay.inbox", 1)
			},
			Config: config,
		},
	)
}

// If a delayed exchange is destroyed, its publishers learn that it is gone. A refused destroy restores the exchange with the
// bindings of others.
func TestAccEveryRelease_NothingIsConfirmedAndDroppedByADestroy(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for name, refused := range map[string]bool{"destroyed": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			published := 0
			endpoint := b.Before(t, func(r *http.Request) {
				if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/q/events.delay.unrouted") || published > 0 {
					return
				}
				published++
				if confirmed(t, b, "events") {
					t.Error("a message was confirmed when no queue could get it")
				}
				if refused {
					confirmed(t, b, "", "events.delay.unrouted")
				}
			})
			core := eventsCore(b, map[string]any{"max_delay": "1s"})
			core.Endpoint = endpoint
			core.MustApply(t)
			b.Request(t, http.MethodPut, b.Path("exchanges", "tap"), map[string]any{"type": "fanout", "durable": true})
			b.Request(t, http.MethodPost, b.Path("bindings", "e", "events", "e", "tap"), map[string]any{"routing_key": "key"})
			before := acctest.List(t, b)
			err := core.Destroy(t.Context())
			if published == 0 {
				t.Fatal("the unrouted queue was never unbound")
			}
			if (err != nil) != refused {
				t.Fatalf("the destroy: %v", err)
			}
			if !refused {
				return
			}
			require.NoError(t, before.RequireSame(acctest.List(t, b)))
			if !confirmed(t, b, "events") {
				t.Error("the exchange is not back")
			}
		})
	}
}

// confirmed reports whether the broker has confirmed a message to an exchange. Otherwise it has closed the channel.
func confirmed(t *testing.T, b *brokertest.Broker, exchange string, key ...string) bool {
	t.Helper()
	ch := b.Channel(t)
	require.NoError(t, ch.Confirm(false))
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	answer, err := ch.PublishWithDeferredConfirm(exchange, strings.Join(key, ""), false, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
	require.NoError(t, err)
	select {
	case reason := <-closed:
		t.Log(reason)
		return false
	case <-answer.Done():
		return answer.Acked()
	case <-t.Context().Done():
		return false
	}
}
