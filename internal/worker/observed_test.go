package worker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
)

// get sends a request to a process that was started to listen.
func get(t *testing.T, w *sidecartest.Process, path string) (status int, body string) {
	t.Helper()
	match := regexp.MustCompile(`address"?[=:]"?(127\.0\.0\.1:\d+)`).FindStringSubmatch(w.Log.String())
	if match == nil {
		t.Fatalf("no address in the log:\n%s", w.Log)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+match[1]+path, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(data)
}

// A worker that cannot get rid of a message says so. It is not ready while it stops.
func TestProbesOfTheProcess(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.unbindFailedQueue(t)
	w := p.start(t, "RABBITMQ_RETRY_LISTEN=0")
	expect := func(path string, want int, text string) {
		t.Helper()
		brokertest.Eventually(t, func() error {
			if status, body := get(t, w, path); status != want || !strings.Contains(body, text) {
				return fmt.Errorf("%s answers %d %s, want %d with %q", path, status, body, want, text)
			}
			return nil
		})
	}
	expect("/readyz", http.StatusOK, `"ready": true`)
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: lastAttempt()})
	expect("/readyz", http.StatusOK, "1 message(s) kept unacknowledged")
	expect("/healthz", http.StatusOK, "ok")
	expect("/metrics", http.StatusOK, `rabbitmq_retry_messages_in_backlog{kind="pipeline",name="orders",vhost="`+p.Vhost+`"} 1`)

	w.Signal(t, syscall.SIGTERM)
	expect("/readyz", http.StatusServiceUnavailable, `"stopping": true`)
	expect("/healthz", http.StatusOK, "ok")
	p.Create(t, p.spec.Expand())
	if code := w.Wait(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, w.Log)
	}
	p.awaitFailed(t, "exhausted")
	p.expectEmpty(t, p.names.FailedQueue())
	require.Equal(t, 1, w.Log.Count("message kept unacknowledged"), w.Log)
}

const (
	trace  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	secret = "the body of a message"
)

// rejectTraced makes one message retry, and then parks it.
func (p *testPipeline) rejectTraced(t *testing.T) {
	t.Helper()
	p.Publish(t, "", "orders.created", amqp.Publishing{
		MessageId: "m\nmsg=forged", Body: []byte(secret), Headers: amqp.Table{"traceparent": trace, "secret": secret},
	})
	for range 2 {
		p.getOne(t, p.Channel(t), "orders.created", func(d amqp.Delivery) error {
			if d.Headers["traceparent"] != trace {
				t.Errorf("the traceparent is %v", d.Headers["traceparent"])
			}
			return d.Reject(false)
		})
	}
	if d := p.awaitFailed(t, "exhausted"); d.Headers["traceparent"] != trace {
		t.Errorf("the traceparent is %v", d.Headers["traceparent"])
	}
}

func TestLogHasALinePerParkedMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  []string
		back int
	}{
		"default": {nil, 0},
		"debug":   {[]string{"RABBITMQ_RETRY_LOG_LEVEL=debug"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
			w := p.start(t, test.env...)
			p.rejectTraced(t)
			require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)
			log := w.Log
			parked := ` work_queue=orders.created attempts=2 message_id="m\nmsg=forged" traceparent=` + trace + "\n"
			if log.Count("message parked") != 1 || log.Count(parked) != 1 || log.Count("message sent back") != test.back {
				t.Errorf("the log:\n%s", log)
			}
			if strings.Contains(log.String(), secret) || strings.Contains(log.String(), p.Password+"@") || log.Count("") != log.Count("time=") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

func TestLogAsJSON(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	w := p.start(t, "RABBITMQ_RETRY_LOG_FORMAT=json", "RABBITMQ_RETRY_LOG_LEVEL=debug", "RABBITMQ_RETRY_LISTEN=0")
	p.rejectTraced(t)
	w.End(t, syscall.SIGTERM)
	var parked, retried, serving map[string]any
	for line := range strings.Lines(w.Log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch entry["msg"] {
		case "message parked in the failed queue":
			parked = entry
		case "message sent back":
			retried = entry
		case "serving /healthz, /readyz and /metrics":
			serving = entry
		}
	}
	for key, want := range map[string]any{
		"pipeline": "orders", "vhost": p.Vhost, "reason": "exhausted", "work_queue": "orders.created", "attempts": 2.0,
		"message_id": "m\nmsg=forged", "traceparent": trace, "level": "INFO",
	} {
		if parked[key] != want {
			t.Errorf("%s is %v, want %v", key, parked[key], want)
		}
	}
	if address, ok := serving["address"].(string); retried["delay"] != "100ms" || !ok || !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("delay %v, address %v", retried["delay"], serving["address"])
	}
}
