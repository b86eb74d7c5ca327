//go:build interop

package interop

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const consumers = "../../../examples/consumers/"

// example is a program of examples/consumers.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(consumers, name))
	require.NoError(t, err)
	return string(text)
}

// What the guide shows in Python is part of a program that the other tests run.
func TestGuideShowsPartsOfTheExamples(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/what-to-write.md")
	require.NoError(t, err)
	programs, shown := "\n"+example(t, "worker/consumer.py")+example(t, "worker/publisher.py"), 0
	for _, found := range block.FindAllStringSubmatch(string(guide), -1) {
		if found[1] == "python" {
			shown++
			assert.Contains(t, programs, "\n"+found[2])
		}
	}
	assert.GreaterOrEqual(t, shown, 4)
}

// server answers the consumer's first request with a status, and all others with success.
type server struct {
	*httptest.Server
	requests chan time.Time
}

// newServer starts a server. The header Retry-After of its first answer is "" if there is none.
func newServer(t *testing.T, status int, retryAfter func() string) server {
	t.Helper()
	s, first := server{requests: make(chan time.Time, 10)}, make(chan struct{}, 1)
	first <- struct{}{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "pay" || r.Header.Get("Idempotency-Key") != "payment-1" {
			t.Errorf("the server gets %q, %v, %v", body, r.Header, err)
		}
		at := time.Now()
		select {
		case <-first:
			if after := retryAfter(); after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(status)
		default:
		}
		s.requests <- at
	}))
	t.Cleanup(s.Close)
	return s
}

// consumed runs the consumer in each language with a pipeline and a sidecar, publishes a message, and calls do. A server
// answers the first request with a status and the header Retry-After.
func consumed(t *testing.T, status int, retryAfter func() string, delays string, do func(*testing.T, *brokertest.Broker, server)) {
	t.Helper()
	for language, program := range map[string]string{"python": "worker/consumer.py", "java": "worker/Consumer.java"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b, s := brokertest.NewNamed(t, "consumed"), newServer(t, status, retryAfter)
			config := pipelineOf(b, "orders", []string{created}, delays, "force_destroy = true")
			apply(t, b, resource.TestStep{Config: config}, func(startSidecar func()) {
				startSidecar()
				startProgram(t, b, example(t, program), language, "PAYMENTS_URL="+s.URL)
				b.Publish(t, "", created, amqp.Publishing{MessageId: "payment-1", Expiration: "600000", Body: []byte("pay")})
				do(t, b, s)
			})
		})
	}
}

// again checks that the second request comes at least so much later than the first.
func again(least time.Duration) func(*testing.T, *brokertest.Broker, server) {
	return func(t *testing.T, _ *brokertest.Broker, s server) {
		t.Helper()
		first := brokertest.Receive(t, s.requests)
		if waited := brokertest.Receive(t, s.requests).Sub(first); waited < least {
			t.Errorf("the second request comes after %s", waited)
		}
	}
}

func without() string { return "" }

// The consumer has a message wait for as long as an HTTP server says, which is longer than any delay.
func TestConsumerOfTheExamplesWaitsAsLongAsAServerSays(t *testing.T) {
	t.Parallel()
	for name, retryAfter := range map[string]func() string{
		"seconds": func() string { return "5" },
		"date":    func() string { return time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumed(t, http.StatusServiceUnavailable, retryAfter, `delays = ["1s", "2s"]`, again(5*time.Second))
		})
	}
}

// The consumer fails once. If the server says that the message is wrong, this is the end, and otherwise it comes again.
func TestConsumerOfTheExamplesGivesUp(t *testing.T) {
	t.Parallel()
	consumed(t, http.StatusUnprocessableEntity, without, `delays = ["100ms"]`, func(t *testing.T, b *brokertest.Broker, s server) {
		t.Helper()
		brokertest.Receive(t, s.requests)
		o := newOperator(t, b, "replay")
		o.waitFor(1)
		o.run("1 unrecoverable "+created, "failed", "list")
		m, ok := b.Get(t, failed)
		require.True(t, ok)
		require.EqualValues(t, 1, m.Headers["retry-count"])
		require.Equal(t, "payment-1", m.MessageId)
		require.Regexp(t, `^(HTTPError|Consumer.Refused): .*422`, m.Headers["dead-letter-error"])
		require.Contains(t, m.Headers["dead-letter-exception"], "process")
		if _, came := brokertest.Within(s.requests, time.Second); came {
			t.Error("the message comes again")
		}
	})
}

// A failure that may pass is retried by the schedule.
func TestConsumerOfTheExamplesFails(t *testing.T) {
	t.Parallel()
	consumed(t, http.StatusInternalServerError, without, `delays = ["2s"]`, again(2*time.Second-50*time.Millisecond))
}

// The publisher has a message delivered to the work queue later.
func TestPublisherOfTheExamplesDelays(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "later")
	apply(t, b, resource.TestStep{Config: exchangeOf(b, "reminders")}, func(startSidecar func()) {
		startSidecar()
		b.DeclareQueue(t, created, "quorum", nil)
		require.NoError(t, b.Channel(t).QueueBind(created, created, "reminders.deliver", false, nil))
		_, deliveries := b.Consume(t, created, 1)
		begun := time.Now()
		startProgram(t, b, example(t, "worker/publisher.py"), "python")
		m := brokertest.Receive(t, deliveries)
		if waited := time.Since(begun); string(m.Body) != "pay" || m.MessageId == "" || waited < 5*time.Second {
			t.Errorf("delivered after %s: %+v", waited, m)
		}
		require.NoError(t, m.Ack(false))
		// The queue keeps the delayed exchange from being destroyed.
		b.Call(t, http.MethodDelete, b.Path("queues", created), nil, nil)
	})
}
