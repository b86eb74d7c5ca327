//go:build interop

package interop

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// The consumers of the examples count, wait between their attempts, and the commands read what they park.
func TestConsumersOfTheExamplesCount(t *testing.T) {
	t.Parallel()
	for language, file := range map[string]string{
		"python": "consumer.py", "go": "consumer.go", "javascript": "consumer.js", "java": "Consumer.java",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b := brokertest.NewNamed(t, "counting")
			b.Needs(t, brokertest.Engine("consumer"))
			withoutWorker(t, b, `engine = "consumer"`, `delays = ["500ms"]`, func(s operator) {
				attempts := startProgram(t, b, example(t, "consumer/"+file), language)
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

// The consumer for queues that delay by themselves sees the attempts and waits of the plan, and then no more.
func TestConsumerOfTheExamplesWithNativeDelays(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "native")
	b.Needs(t, brokertest.Engine("native"))
	withoutWorker(t, b, `engine = "native"`, `delays = ["400ms", "800ms"]`, func(s operator) {
		attempts := startProgram(t, b, example(t, "native/consumer.py"), "python")
		publish(t, b, created, "eu.order")
		attempted(t, attempts, 400*time.Millisecond, 800*time.Millisecond, 800*time.Millisecond)
		s.waitFor(1)
		s.run("1 delivery_limit "+created, "failed", "list")
	})
}

// attempted requires that a consumer waits for as long as the pipeline says: it says "attempt 1", and so on, when a message
// fails, and nothing after the last one.
func attempted(t *testing.T, attempts <-chan printed, waits ...time.Duration) {
	t.Helper()
	var last time.Time
	for i := range len(waits) + 1 {
		line := brokertest.Receive(t, attempts)
		require.Contains(t, line.text, fmt.Sprintf("attempt %d", i+1))
		if i > 0 {
			if waited := line.at.Sub(last); waited < waits[i-1]-50*time.Millisecond {
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
	b.Needs(t, brokertest.Engine("native"))
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

// Programs that were written for the plugin work after the changes that the pages name, and no others.
func TestProgramsForThePluginDelay(t *testing.T) {
	t.Parallel()
	for heading, program := range map[string]struct{ language, file string }{
		"Python": {"python", "reminders.py"}, "Go": {"go", "reminders.go"}, "JavaScript": {"javascript", "reminders.js"},
		"Java": {"java", "Reminders.java"}, "PHP": {"php", "reminders.php"},
	} {
		t.Run(program.language, func(t *testing.T) {
			t.Parallel()
			text := contents(t, publishers+program.file)
			diff := code(t, below(t, publishers+"README.md", heading), "diff")
			isChanged(t, text, diff)
			if program.language == "python" {
				require.Equal(t, diff, code(t, section(t, "moving-from-the-delayed-message-plugin", "What changes in a program"), "diff"))
			}
			b := brokertest.NewNamed(t, "delayed "+program.language)
			apply(t, b, resource.TestStep{Config: exchangeOf(b, "events")}, func(startSidecar func()) {
				startSidecar()
				delayed(t, startProgram(t, b, text, program.language), 1, 2, 3)
				// The queue of the programs keeps the delayed exchange from being destroyed.
				b.Call(t, http.MethodDelete, b.Path("queues", "reminders"), nil, nil)
			})
		})
	}
}

// isChanged checks that a diff makes this program of one for the plugin: the program has each line that begins with + once,
// and no other trace of the plugin than the lines that begin with -, which the ones that follow them replace.
func isChanged(t *testing.T, program, diff string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	before := program
	for i := 0; i+1 < len(lines); i += 2 {
		old, isOld := strings.CutPrefix(lines[i], "-")
		replacement, isNew := strings.CutPrefix(lines[i+1], "+")
		if !isOld || !isNew || strings.Count(program, replacement+"\n") != 1 || strings.Contains(program, old+"\n") {
			t.Fatalf("%q does not lead to a line of\n%s", lines[i:i+2], program)
		}
		before = strings.Replace(before, replacement+"\n", old+"\n", 1)
	}
	if len(lines)%2 != 0 || strings.Contains(program, "x-delayed") || strings.Contains(before, `.deliver"`) || strings.Contains(before, ".deliver'") {
		t.Fatalf("the diff does not name all changes:\n%s\n%s", diff, program)
	}
}

// delayed compares what a program prints of messages with so many seconds of delay. On a busy machine, they can come in any order.
func delayed(t *testing.T, lines <-chan printed, seconds ...int) {
	t.Helper()
	var came []int
	for range seconds {
		line := brokertest.Receive(t, lines)
		var body, waited, delay int
		_, err := fmt.Sscanf(line.text, "%d after %d ms, x-delay %d", &body, &waited, &delay)
		require.NoErrorf(t, err, "the program says %q", line.text)
		if waited < 1000*body || waited > 1000*body+20_000 || delay != -1000*body {
			t.Errorf("the program says %q", line.text)
		}
		came = append(came, body)
	}
	require.ElementsMatch(t, seconds, came)
}
