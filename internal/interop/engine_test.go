//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The consumers of the guide count as they are printed, wait between their attempts, and the commands read and replay what
// they park.
func TestConsumersOfTheGuideCount(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"python", "go", "javascript"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b := brokertest.NewNamed(t, "counting")
			if !b.VersionAtLeast("4.0") {
				t.Skip("not supported by this release")
			}
			withoutWorker(t, b, `engine = "consumer"`, `delays = ["500ms"]`, func(s operator) {
				attempts := startProgram(t, b, code(t, section(t, "which-engine", "Consumer"), language), language)
				publish(t, b, created, "eu.order")
				attempted(t, attempts, 500*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond)
				s.waitFor(1)
				s.run("1 exhausted "+created, "list")
				m, ok := b.Get(t, failed)
				if text, _ := m.Headers["dead-letter-error"].(string); !ok || fmt.Sprint(m.Headers["retry-count"]) != "4" || text == "" {
					t.Errorf("parked: %+v", m)
				}
				if m.MessageId != "m-eu.order" || m.Priority != 5 || m.DeliveryMode != amqp.Persistent || m.Type != "order" || m.Headers["tenant"] != "eu" {
					t.Errorf("parked: %+v", m)
				}
			})
		})
	}
}

// The consumer of the guide for queues that delay by themselves sees the attempts and waits of the plan, and then no more.
func TestConsumerOfTheGuideWithNativeDelays(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "native")
	if !b.VersionAtLeast("4.3.1") {
		t.Skip("not supported by this release")
	}
	withoutWorker(t, b, `engine = "native"`, `delays = ["400ms", "800ms"]`, func(s operator) {
		attempts := startProgram(t, b, code(t, section(t, "which-engine", "Native"), "python"), "python")
		publish(t, b, created, "eu.order")
		attempted(t, attempts, 400*time.Millisecond, 800*time.Millisecond, 800*time.Millisecond)
		s.waitFor(1)
		s.run("1 delivery_limit "+created, "list")
	})
}

// attempted compares what a consumer prints with the waits of the pipeline: it says "attempt 1", and so on, when a message
// fails, and nothing after the last one.
func attempted(t *testing.T, attempts <-chan printed, waits ...time.Duration) {
	t.Helper()
	var last time.Time
	for i := range len(waits) + 1 {
		select {
		case line, runs := <-attempts:
			if want := fmt.Sprintf("attempt %d", i+1); !runs || !strings.Contains(line.text, want) {
				t.Fatalf("the consumer says %q (it runs: %t), want %q", line.text, runs, want)
			}
			if i > 0 {
				if waited := line.at.Sub(last); waited < waits[i-1]-50*time.Millisecond || waited > waits[i-1]+3*time.Second {
					t.Errorf("attempt %d comes after %v, want %v", i+1, waited, waits[i-1])
				}
			}
			last = line.at
		case <-time.After(30 * time.Second):
			t.Fatalf("no attempt %d", i+1)
		}
	}
	select {
	case line := <-attempts:
		t.Errorf("after the last attempt the consumer says %q", line.text)
	case <-time.After(2 * waits[len(waits)-1]):
	}
}

// What a queue that delays by itself has parked is read and replayed, too.
func TestCommandsReadWhatIsParkedNatively(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "native")
	if !b.VersionAtLeast("4.3.1") {
		t.Skip("not supported by this release")
	}
	withoutWorker(t, b, `engine = "native"`, `delays = ["100ms"]`, func(s operator) {
		publish(t, b, created, "eu.order")
		ch := b.Channel(t)
		deliveries, err := ch.Consume(created, "", false, false, false, false, nil)
		require.NoError(t, err)
		for range maxAttempts {
			require.NoError(t, (<-deliveries).Reject(true))
		}
		s.waitFor(1)
		s.run("1 delivery_limit "+created, "list")
		s.run("", "replay", "--all", "--yes")
		d := <-deliveries
		if d.RoutingKey != "eu.order" || d.MessageId != "m-eu.order" || d.Headers["replay-count"] != int64(1) {
			t.Errorf("replayed: %+v", d)
		}
		require.NoError(t, d.Ack(false))
	})
}

// withoutWorker makes a pipeline, and does something with it.
func withoutWorker(t *testing.T, b *brokertest.Broker, engine, delays string, do func(operator)) {
	t.Helper()
	config := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name          = "orders"
  vhost         = %q
  %s
  %s
  max_attempts  = %d
  force_destroy = true
  work_queues   = { %q = { declare = true } }
}`, b.Vhost, engine, delays, maxAttempts, created)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providers,
		Steps: []resource.TestStep{{Config: config, Check: func(*terraform.State) error {
			s := newOperator(t, b)
			do(s)
			s.hasNoInbox()
			return nil
		}}},
	})
}

// hasNoInbox asks for the status of a pipeline without a worker: nothing is missing.
func (s operator) hasNoInbox() {
	s.Helper()
	status := exec.CommandContext(s.Context(), s.sidecar, "status", "orders", "--vhost", s.broker.Vhost)
	status.Env = append(os.Environ(), "RABBITMQ_URI="+operatorURI(s.T, s.broker, "status"))
	if output, err := status.CombinedOutput(); err != nil || strings.Contains(string(output), "inbox") || !strings.Contains(string(output), failed) {
		s.Errorf("status: %v, printed\n%s", err, output)
	}
}
