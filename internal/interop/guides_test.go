//go:build interop

package interop

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
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
				s.run("1 exhausted "+created, "failed", "list")
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
		s.run("1 delivery_limit "+created, "failed", "list")
	})
}

// attempted compares what a consumer prints with the waits of the pipeline: it says "attempt 1", and so on, when a message
// fails, and nothing after the last one.
func attempted(t *testing.T, attempts <-chan printed, waits ...time.Duration) {
	t.Helper()
	var last time.Time
	for i := range len(waits) + 1 {
		line := brokertest.Receive(t, attempts)
		require.Contains(t, line.text, fmt.Sprintf("attempt %d", i+1))
		if i > 0 {
			if waited := line.at.Sub(last); waited < waits[i-1]-50*time.Millisecond || waited > waits[i-1]+3*time.Second {
				t.Errorf("attempt %d comes after %v, want %v", i+1, waited, waits[i-1])
			}
		}
		last = line.at
	}
	if line, came := brokertest.Within(attempts, 2*waits[len(waits)-1]); came {
		t.Errorf("after the last attempt the consumer says %q", line.text)
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
		s.run("1 delivery_limit "+created, "failed", "list")
		s.run("", "failed", "replay", "--all", "--yes")
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
	config := pipelineOf(b, "orders", []string{created}, engine, delays, fmt.Sprintf("max_attempts = %d", maxAttempts), "force_destroy = true")
	apply(t, b, resource.TestStep{Config: config}, func(func()) {
		do(newOperator(t, b, "replay"))
		// Nothing is missing from a pipeline without a worker.
		if status := newOperator(t, b, "status").run(failed, "status"); strings.Contains(status, "inbox") {
			t.Errorf("status: printed\n%s", status)
		}
	})
}

// The consumer of the guide has a message wait for as long as an HTTP server says, which is longer than any delay.
func TestConsumerOfTheGuideWaitsAsLongAsAServerSays(t *testing.T) {
	t.Parallel()
	for name, retryAfter := range map[string]func() string{
		"seconds": func() string { return "5" },
		"date":    func() string { return time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.NewNamed(t, "waiting")
			var answered atomic.Int32
			requests := make(chan time.Time, 10)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "pay" {
					t.Errorf("the server gets %q, %v", body, err)
				}
				if answered.Add(1) == 1 {
					w.Header().Set("Retry-After", retryAfter())
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				requests <- time.Now()
			}))
			t.Cleanup(server.Close)
			config := pipelineOf(b, "orders", []string{created}, `delays = ["1s", "2s"]`, "force_destroy = true")
			apply(t, b, resource.TestStep{Config: config}, func(startSidecar func()) {
				startSidecar()
				startProgram(t, b, code(t, section(t, "message-headers", "Waiting as long as a server says"), "python"), "python", "PAYMENTS_URL="+server.URL)
				b.Publish(t, "", created, amqp.Publishing{Body: []byte("pay")})
				var first time.Time
				for _, earliest := range []time.Duration{0, 5 * time.Second} {
					at := brokertest.Receive(t, requests)
					if waited := at.Sub(first); waited < earliest {
						t.Errorf("the second request comes after %s", waited)
					}
					first = at
				}
			})
		})
	}
}

// Programs that were written for the plugin work after the changes that the guide names, and no others.
func TestProgramsForThePluginDelay(t *testing.T) {
	t.Parallel()
	for heading, language := range map[string]string{
		"Python": "python", "Go": "go", "JavaScript": "javascript", "Java": "java", "PHP": "php",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			text := section(t, "moving-from-the-delayed-message-plugin", heading)
			program := changed(t, code(t, text, language), code(t, text, "diff"))
			b := brokertest.NewNamed(t, "delayed "+language)
			config := fmt.Sprintf(`
resource "rabbitmq_delayed_exchange" "events" {
  name          = "events"
  vhost         = %q
  max_delay     = "1h"
  force_destroy = true
}
output "worker" { value = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.events.worker] }) }`, b.Vhost)
			apply(t, b, resource.TestStep{Config: config}, func(startSidecar func()) {
				startSidecar()
				delayed(t, startProgram(t, b, program, language), 1, 2, 3)
				// The queue of the programs keeps the delayed exchange from being destroyed.
				b.Call(t, http.MethodDelete, b.Path("queues", "reminders"), nil, nil)
			})
		})
	}
}

// changed is a program with each line of a diff that begins with - replaced by the one that follows.
func changed(t *testing.T, program, diff string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i := 0; i < len(lines); i += 2 {
		old, isOld := strings.CutPrefix(lines[i], "-")
		replacement, isNew := strings.CutPrefix(lines[i+1], "+")
		if !isOld || !isNew || strings.Count(program, old+"\n") != 1 {
			t.Fatalf("%q does not replace a line of\n%s", lines[i:i+2], program)
		}
		program = strings.Replace(program, old+"\n", replacement+"\n", 1)
	}
	return program
}

// delayed compares what a program prints of messages with so many seconds of delay.
func delayed(t *testing.T, lines <-chan printed, seconds ...int) {
	t.Helper()
	for _, s := range seconds {
		line := brokertest.Receive(t, lines)
		var body, waited, delay int
		_, err := fmt.Sscanf(line.text, "%d after %d ms, x-delay %d", &body, &waited, &delay)
		require.NoErrorf(t, err, "the program says %q", line.text)
		if body != s || waited < 1000*s || waited > 1000*s+20_000 || delay != -1000*s {
			t.Errorf("the program says %q, want %d s", line.text, s)
		}
	}
}
