package delayedexchange_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// sidecar runs with a configuration until the test ends, and adopts those that are sent.
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

// With timeouts.update the apply itself waits for the levels above a lowered max_delay, while a sidecar works that does not know
// of it. Nothing is lost or early.
func TestAcc_UpdateWaitsForRetiredLevels(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
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
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_levels"), knownvalue.MapSizeExact(0))},
		},
		resource.TestStep{
			PreConfig: func() {
				arrives(t, b, "long", due)
				// The sidecar finds no level for the one, and goes on with the other.
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
				unbind(t, b, "events.deliver", "work")
			},
			Config: after, ConfigPlanChecks: empty,
		},
	)
}

// A worker gets the new precision after the apply, and needs the old levels until then.
func TestAcc_ReplacedPrecisionKeepsTheOldLevelsForAnotherApply(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
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
				statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_levels"), knownvalue.MapSizeExact(3)),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_levels").AtMapKey("events.delay.1s.2").AtMapKey("delay"), knownvalue.StringExact("4s")),
			},
			ExpectNonEmptyPlan: true, // which removes the old levels
		},
		resource.TestStep{
			Config: after,
			Check: func(*terraform.State) error {
				if left := levelsOf(t, b); slices.Contains(left, "e 1s 0") || len(left) != 6 {
					t.Errorf("levels: %q", left)
				}
				arrives(t, b, "last", ask(t, b, "last", 6*time.Second))
				unbind(t, b, "events.deliver", "work")
				return nil
			},
		},
	)
}
