package delayedexchange_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const unrouted = "events.delay.unrouted"

// keys are the routing keys, and also the values of a header.
var keys = []string{"orders.created", "orders.paid", "users.created", "users.deleted"}

// routing says how queues are bound to the delivering exchange, and which queues get a message with a key.
type routing struct {
	bound []bound
	to    map[string][]string
}

type bound struct {
	queue, key string
	arguments  map[string]any
}

var routings = map[string]routing{
	"topic": {
		bound: []bound{{"work.1", "orders.#", nil}, {"work.2", "*.created", nil}},
		to: map[string][]string{
			"orders.created": {"work.1", "work.2"}, "orders.paid": {"work.1"}, "users.created": {"work.2"}, "users.deleted": {unrouted},
		},
	},
	"direct": {
		bound: []bound{{"work.1", "orders.created", nil}, {"work.2", "orders.paid", nil}, {"work.2", "orders.created", nil}},
		to: map[string][]string{
			"orders.created": {"work.1", "work.2"}, "orders.paid": {"work.2"}, "users.created": {unrouted}, "users.deleted": {unrouted},
		},
	},
	"fanout": {
		bound: []bound{{"work.1", "", nil}, {"work.2", "", nil}},
		to: map[string][]string{
			"orders.created": {"work.1", "work.2"}, "orders.paid": {"work.1", "work.2"},
			"users.created": {"work.1", "work.2"}, "users.deleted": {"work.1", "work.2"},
		},
	},
	"headers": {
		bound: []bound{
			{"work.1", "", map[string]any{"x-match": "all", "kind": "orders.created"}},
			{"work.2", "", map[string]any{"x-match": "any", "kind": "orders.created", "other": 1}},
			{"work.2", "", map[string]any{"x-match": "all", "kind": "users.created"}},
		},
		to: map[string][]string{
			"orders.created": {"work.1", "work.2"}, "orders.paid": {unrouted}, "users.created": {"work.2"}, "users.deleted": {unrouted},
		},
	},
}

// There are 2,000 messages with random delays up to 20 s, 500 for each type of exchange. Each arrives once in each of the
// right queues, never early, and unchanged. The plan is empty before, while they wait, and after.
func TestAccEveryRelease_EachMessageComesOnceWhenItIsDue(t *testing.T) {
	t.Parallel()
	for exchange, r := range routings {
		t.Run(exchange, func(t *testing.T) {
			t.Parallel()
			acctest.Require(t)
			b := brokertest.New(t)
			config := exchangeHCL(b, "events", fmt.Sprintf("type = %q", exchange), `max_delay = "20s"`)
			var sent map[string]published
			accept(t, b, acctest.Quick(),
				resource.TestStep{Config: config},
				resource.TestStep{Config: config, ConfigPlanChecks: empty, PreConfig: func() {
					for _, queue := range []string{"work.1", "work.2"} {
						b.DeclareQueue(t, queue, "quorum", nil)
					}
					for _, to := range r.bound {
						bind(t, b, "events.deliver", to.queue, to.key, to.arguments)
					}
					sidecar(t, b, "20s", "100ms")
					sent = publish(t, b, 500)
				}},
				resource.TestStep{Config: config, ConfigPlanChecks: empty, PreConfig: func() {
					expect(t, b, r, sent)
					for _, queue := range []string{"work.1", "work.2"} {
						b.Unbind(t, "events.deliver", "q", queue)
					}
				}},
			)
		})
	}
}

// published is a published message, with the earliest time when it is due.
type published struct {
	amqp.Publishing
	key string
	due time.Time
}

func publish(t *testing.T, b *brokertest.Broker, n int) map[string]published {
	t.Helper()
	ch := b.Channel(t)
	require.NoError(t, ch.Confirm(false))
	sent := make(map[string]published, n)
	var last *amqp.DeferredConfirmation
	for i := range n {
		key, id, delay := keys[i%len(keys)], strconv.Itoa(i), time.Duration(rand.Int64N(20_000))*time.Millisecond
		m := amqp.Publishing{
			Headers:     amqp.Table{"x-delay": delay.Milliseconds(), "kind": key, "table": amqp.Table{"a": []any{int32(1), true}}},
			ContentType: "application/json", ContentEncoding: "identity", DeliveryMode: amqp.Persistent, CorrelationId: "c" + id,
			ReplyTo: "answers", MessageId: id, Timestamp: time.Unix(1_700_000_000, 0), Type: "event", AppId: "shop", Body: []byte(id),
		}
		sent[id] = published{m, key, time.Now().Add(delay)}
		var err error
		last, err = ch.PublishWithDeferredConfirm("events", key, true, false, m)
		require.NoError(t, err)
	}
	brokertest.Receive(t, last.Done())
	require.True(t, last.Acked(), "the broker has refused the last message")
	return sent
}

// expect takes messages until each message has come to each of its queues, and for a while longer.
func expect(t *testing.T, b *brokertest.Broker, r routing, sent map[string]published) {
	t.Helper()
	missing := map[string]bool{}
	for id, m := range sent {
		for _, queue := range r.to[m.key] {
			missing[queue+" "+id] = true
		}
	}
	type arrival struct {
		amqp.Delivery
		queue string
		at    time.Time
	}
	arrivals := make(chan arrival)
	for _, queue := range []string{"work.1", "work.2", unrouted} {
		// Without a context, since the library would cancel the consumer while the channel is closed, and mix up the answers.
		deliveries, err := b.Channel(t).Consume(queue, "", true, false, false, false, nil)
		require.NoError(t, err)
		go func() {
			for d := range deliveries {
				arrivals <- arrival{d, queue, time.Now()}
			}
		}()
	}
	for len(missing) > 0 {
		a := brokertest.Receive(t, arrivals)
		if !missing[a.queue+" "+a.MessageId] {
			t.Errorf("message %s was not for %s, or came again", a.MessageId, a.queue)
		}
		delete(missing, a.queue+" "+a.MessageId)
		requireAsPublished(t, sent[a.MessageId], a.Delivery, a.at)
	}
	if a, came := brokertest.Within(arrivals, time.Second); came {
		t.Errorf("message %s came again to %s", a.MessageId, a.queue)
	}
}

func requireAsPublished(t *testing.T, want published, got amqp.Delivery, at time.Time) {
	t.Helper()
	if early := want.due.Sub(at); early > 0 {
		t.Errorf("message %s came %s early", got.MessageId, early)
	}
	asked, _ := want.Headers["x-delay"].(int64)
	if said := fmt.Sprint(got.Headers["x-delay"]); said != fmt.Sprint(-asked) || got.RoutingKey != want.key {
		t.Errorf("message %s of %d ms and %s says %s ms and %s", got.MessageId, asked, want.key, said, got.RoutingKey)
	}
	same := amqp.Publishing{
		Headers:     amqp.Table{"x-delay": asked, "kind": got.Headers["kind"], "table": got.Headers["table"]},
		ContentType: got.ContentType, ContentEncoding: got.ContentEncoding, DeliveryMode: got.DeliveryMode, CorrelationId: got.CorrelationId,
		ReplyTo: got.ReplyTo, MessageId: got.MessageId, Timestamp: got.Timestamp, Type: got.Type, AppId: got.AppId, Body: got.Body,
	}
	require.Equal(t, want.Publishing, same)
}

// sidecar runs with a configuration until the test ends, and adopts each new configuration.
func sidecar(t *testing.T, b *brokertest.Broker, maxDelay, precision string) (adopt func(maxDelay, precision string)) {
	t.Helper()
	uri, err := amqpconn.ParseURI(b.URI)
	require.NoError(t, err)
	config := func(maxDelay, precision string) workerconfig.Config {
		return workerconfig.Config{DelayedExchanges: []delayed.Worker{
			{Version: delayed.WorkerVersion, Name: "events", Vhost: b.Vhost, MaxDelay: maxDelay, Precision: precision},
		}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	configs, done := make(chan workerconfig.Config), make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Options{
			Config: config(maxDelay, precision), Configs: configs, Prefetch: worker.DefaultPrefetch, Logger: slog.New(slog.DiscardHandler),
			Brokers: func() ([]amqpconn.URI, error) { return []amqpconn.URI{uri}, nil },
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, brokertest.Receive(t, done))
	})
	return func(maxDelay, precision string) { configs <- config(maxDelay, precision) }
}

// ask publishes a message to the delayed exchange.
func ask(t *testing.T, b *brokertest.Broker, body string, wait time.Duration) (due time.Time) {
	t.Helper()
	due = time.Now().Add(wait)
	b.Publish(t, "events", "mail", amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: []byte(body), Headers: amqp.Table{"x-delay": wait.Milliseconds()},
	})
	return due
}

// With timeouts.update, the apply itself waits for the levels above a lowered max_delay, while a sidecar still has the old
// configuration. No message is lost or early.
func TestAcc_UpdateWaitsForRetiredLevels(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	const wait = `timeouts = { update = "3m" }`
	before := exchangeHCL(b, "events", `max_delay = "40s"`, `precision = "1s"`, wait)
	after := exchangeHCL(b, "events", `max_delay = "10s"`, `precision = "1s"`, wait)
	var adopt func(maxDelay, precision string)
	var due time.Time
	accept(t, b, acctest.Times(),
		resource.TestStep{Config: before},
		resource.TestStep{
			PreConfig: func() {
				bind(t, b, "events.deliver", "work", "mail", nil)
				adopt = sidecar(t, b, "40s", "1s")
				due = ask(t, b, "long", 38*time.Second)
				eventuallyReported(t, b, "events.delay.1s.5", 1)
			},
			Config: after,
			Check: func(*terraform.State) error {
				if left := levelsOf(t, b); len(left) != 8 {
					return fmt.Errorf("levels: %q", left)
				}
				return nil
			},
			ConfigStateChecks: []statecheck.StateCheck{size("retired_levels", 0)},
		},
		resource.TestStep{
			PreConfig: func() {
				arrives(t, b, "long", due)
				// The sidecar finds no level for this message, and continues with the next one.
				ask(t, b, "too long", 38*time.Second)
				arrives(t, b, "short", ask(t, b, "short", 3*time.Second))
				adopt("10s", "1s")
				brokertest.Eventually(t, func() error {
					m, refused := b.Get(t, unrouted)
					if !refused {
						return errors.New("nothing is refused")
					}
					if string(m.Body) != "too long" || m.Headers["dead-letter-reason"] != "delay_too_long" {
						t.Errorf("%q is in the unrouted queue: %v", m.Body, m.Headers)
					}
					return nil
				})
				b.Unbind(t, "events.deliver", "q", "work")
			},
			Config: after, ConfigPlanChecks: empty,
		},
	)
}

// A worker gets the new precision after the apply, and needs the old levels until then.
func TestAcc_ReplacedPrecisionKeepsTheOldLevelsForAnotherApply(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	const wait = `timeouts = { update = "3m" }`
	before := exchangeHCL(b, "events", `max_delay = "7s"`, `precision = "1s"`, wait)
	after := exchangeHCL(b, "events", `max_delay = "8s"`, `precision = "2s"`, wait)
	var adopt func(maxDelay, precision string)
	accept(t, b, acctest.Times(),
		resource.TestStep{Config: before},
		resource.TestStep{
			PreConfig: func() {
				bind(t, b, "events.deliver", "work", "mail", nil)
				adopt = sidecar(t, b, "7s", "1s")
			},
			Config: after,
			Check: func(*terraform.State) error {
				arrives(t, b, "old", ask(t, b, "old", 6*time.Second))
				adopt("8s", "2s")
				arrives(t, b, "new", ask(t, b, "new", 6*time.Second))
				return nil
			},
			ConfigStateChecks: []statecheck.StateCheck{
				size("retired_levels", 3),
				state("retired_levels", knownvalue.MapPartial(map[string]knownvalue.Check{
					"events.delay.1s.2": knownvalue.ObjectPartial(map[string]knownvalue.Check{"delay": knownvalue.StringExact("4s")}),
				})),
			},
			ExpectNonEmptyPlan: true, // it removes the old levels
		},
		resource.TestStep{
			Config: after,
			Check: func(*terraform.State) error {
				if left := levelsOf(t, b); slices.Contains(left, "e 1s 0") || len(left) != 6 {
					t.Errorf("levels: %q", left)
				}
				arrives(t, b, "last", ask(t, b, "last", 6*time.Second))
				b.Unbind(t, "events.deliver", "q", "work")
				return nil
			},
		},
	)
}
