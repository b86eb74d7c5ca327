//go:build interop

package interop

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

const consumers = "../../examples/consumers/"

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
	guide, err := os.ReadFile("../../docs/guides/what-to-write.md")
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

// consumed runs the consumer with a pipeline and a sidecar, and publishes a message.
func consumed(t *testing.T, b *brokertest.Broker, s server, delays string, do func()) {
	t.Helper()
	config := pipelineOf(b, "orders", []string{created}, delays, "force_destroy = true")
	apply(t, b, resource.TestStep{Config: config}, func(startSidecar func()) {
		startSidecar()
		startProgram(t, b, example(t, "worker/consumer.py"), "python", "PAYMENTS_URL="+s.URL)
		b.Publish(t, "", created, amqp.Publishing{MessageId: "payment-1", Expiration: "600000", Body: []byte("pay")})
		do()
	})
}

// The consumer has a message wait for as long as an HTTP server says, which is longer than any delay.
func TestConsumerOfTheExamplesWaitsAsLongAsAServerSays(t *testing.T) {
	t.Parallel()
	for name, retryAfter := range map[string]func() string{
		"seconds": func() string { return "5" },
		"date":    func() string { return time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, http.StatusServiceUnavailable, retryAfter)
			consumed(t, brokertest.NewNamed(t, "waiting"), s, `delays = ["1s", "2s"]`, func() {
				first := brokertest.Receive(t, s.requests)
				if waited := brokertest.Receive(t, s.requests).Sub(first); waited < 5*time.Second {
					t.Errorf("the second request comes after %s", waited)
				}
			})
		})
	}
}

// The consumer fails once. If the server says that the message is wrong, this is the end, and otherwise it comes again.
func TestConsumerOfTheExamplesGivesUp(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "permanent")
	s := newServer(t, http.StatusUnprocessableEntity, func() string { return "" })
	consumed(t, b, s, `delays = ["100ms"]`, func() {
		brokertest.Receive(t, s.requests)
		o := newOperator(t, b, "replay")
		o.waitFor(1)
		o.run("1 unrecoverable "+created, "failed", "list")
		m, ok := b.Get(t, failed)
		text, _ := m.Headers["dead-letter-error"].(string)
		if !ok || fmt.Sprint(m.Headers["retry-count"]) != "1" || m.MessageId != "payment-1" || !strings.Contains(text, "422") {
			t.Errorf("parked: %+v", m)
		}
		if _, came := brokertest.Within(s.requests, time.Second); came {
			t.Error("the message comes again")
		}
	})
}

// A failure that may pass is retried by the schedule, with what the consumer says about it.
func TestConsumerOfTheExamplesFails(t *testing.T) {
	t.Parallel()
	s := newServer(t, http.StatusInternalServerError, func() string { return "" })
	consumed(t, brokertest.NewNamed(t, "passing"), s, `delays = ["2s"]`, func() {
		first := brokertest.Receive(t, s.requests)
		if waited := brokertest.Receive(t, s.requests).Sub(first); waited < 2*time.Second-50*time.Millisecond {
			t.Errorf("the second request comes after %s", waited)
		}
	})
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
