package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/probe"
)

func get(t *testing.T, h http.Handler, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

func newPipeline(t *testing.T, name string) *deadletter.Pipeline {
	t.Helper()
	return deadletter.NewPipeline(pipeline.Worker{
		Version: pipeline.WorkerVersion, Name: name, Vhost: "/", Delays: []string{"5s"}, MaxAttempts: 3,
	})
}

func TestReadyMeansThatAnInboxIsConsumed(t *testing.T) {
	t.Parallel()
	set := metrics.New("1.2.3")
	ctx, stop := context.WithCancel(t.Context())
	h := probe.Handler(ctx, set)
	expect := func(when string, want int, texts ...string) {
		t.Helper()
		status, body := get(t, h, "/readyz")
		if status != want || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", when, status, body)
		}
		for _, text := range texts {
			require.Contains(t, body, text, when)
		}
		if status, _ := get(t, h, "/healthz"); status != http.StatusOK {
			t.Errorf("%s: /healthz answers %d: the process would be killed", when, status)
		}
	}
	expect("before there is a configuration", http.StatusServiceUnavailable)
	orders, mails := newPipeline(t, "orders"), newPipeline(t, "mails")
	set.ConfigLoaded([]metrics.Config{orders, mails}, nil)
	expect("before the first session", http.StatusServiceUnavailable, `"state": "disconnected"`)
	set.Flow(orders).Enter(metrics.Consuming)
	set.Flow(mails).Restarted(errors.New("no queue 'mails.inbox'"))
	expect("with one of two", http.StatusOK, `"state": "consuming"`, "no queue 'mails.inbox'")
	set.Flow(mails).Enter(metrics.Consuming)
	expect("with both", http.StatusOK, `"ready": true`)
	stop()
	expect("stopping", http.StatusServiceUnavailable, `"stopping": true`)
}

// Orchestrators and scripts rely on the keys of 0.1.
func TestReadinessOf01Stays(t *testing.T) {
	t.Parallel()
	var before, now readyz
	written, err := os.ReadFile("testdata/readyz-of-0.1.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(written, &before))
	set := metrics.New("")
	orders := newPipeline(t, "orders")
	set.ConfigLoaded([]metrics.Config{orders}, nil)
	set.Flow(orders).Enter(metrics.Consuming)
	_, body := get(t, probe.Handler(t.Context(), set), "/readyz")
	require.NoError(t, json.Unmarshal([]byte(body), &now))
	before.Pipelines[0]["vhost"], before.DelayedExchanges = "/", []map[string]any{}
	require.Equal(t, before, now)
}

type readyz struct {
	Ready            bool
	Pipelines        []map[string]any
	DelayedExchanges []map[string]any `json:"delayed_exchanges"`
}

func TestMetricsAreInPrometheusFormat(t *testing.T) {
	t.Parallel()
	set := metrics.New("1.2.3")
	set.ConfigLoaded([]metrics.Config{newPipeline(t, "orders")}, nil)
	status, body := get(t, probe.Handler(t.Context(), set), "/metrics")
	for _, want := range []string{
		"# TYPE rabbitmq_retry_messages_received_total counter\n",
		`rabbitmq_retry_messages_retried_total{delay="5s",kind="pipeline",name="orders",vhost="/",work_queue=""} 0` + "\n",
		`version="1.2.3"`, "go_goroutines ",
	} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, without %q:\n%s", status, want, body)
		}
	}
}

func TestOnlyReadingIsAnswered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(probe.Handler(t.Context(), metrics.New("")))
	defer server.Close()
	for request, want := range map[string]int{
		"GET /":              http.StatusNotFound,
		"GET /debug/pprof/":  http.StatusNotFound,
		"POST /healthz":      http.StatusMethodNotAllowed,
		"HEAD /healthz":      http.StatusOK,
		"GET /metrics/extra": http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
		require.NoError(t, err)
		answer, err := server.Client().Do(r)
		require.NoError(t, err)
		_ = answer.Body.Close()
		require.Equal(t, want, answer.StatusCode, request)
	}
}

func TestAddressesWithoutAHostAreLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"15695":           "127.0.0.1:15695",
		":15695":          "127.0.0.1:15695",
		"0.0.0.0:15695":   "0.0.0.0:15695",
		"[::]:15695":      "[::]:15695",
		"localhost:15695": "localhost:15695",
		"0":               "127.0.0.1:0",
		"":                "",
		"0.0.0.0":         "",
		"::1:15695":       "",
		"*:http":          "",
		"65536":           "",
		"-1":              "",
		"http://x:1":      "",
		"password@x:1":    "",
	} {
		got, err := probe.ParseAddress(address)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", address, got, err)
		}
		if err != nil && address != "" && strings.Contains(err.Error(), address) && address != "0.0.0.0" {
			t.Errorf("the error quotes %q: %v", address, err)
		}
	}
}

func TestPortInUseSaysWhatToDo(t *testing.T) {
	t.Parallel()
	listener, err := probe.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	if _, err = probe.Listen(t.Context(), listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Error(err)
	}
}

// A request that never ends does not keep the worker from stopping.
func TestStopDoesNotWaitForSlowClients(t *testing.T) {
	t.Parallel()
	listener, err := probe.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	begun, released := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(released)
	})
	stop := probe.Serve(t.Context(), listener, slow, slog.New(slog.NewTextHandler(io.Discard, nil)))
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), http.NoBody)
		if err != nil {
			return
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-begun
	stop()
	<-released
}
