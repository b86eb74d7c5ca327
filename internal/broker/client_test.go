package broker

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func newClient(t *testing.T, b *brokertest.Broker, endpoint string) *Client {
	t.Helper()
	client, err := New(Config{Endpoint: endpoint, Username: b.Username, Password: b.Password})
	require.NoError(t, err)
	return client
}

func TestReadsAreRepeatedAndWritesAreNot(t *testing.T) {
	t.Parallel()
	var reads, writes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if reads.Add(1) < 3 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			_, _ = w.Write([]byte(`{"name":"guest","tags":["management"],"rabbitmq_version":"4.3.6"}`))
			return
		}
		writes.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	c, err := New(Config{Endpoint: server.URL, Username: "guest", Password: "guest"})
	require.NoError(t, err)
	if user, err := c.User(t.Context()); err != nil || user.Name != "guest" {
		t.Errorf("got %+v, %v", user, err)
	}
	if _, err := c.PutExchange(context.Background(), "/", "x", topology.Exchange{Type: "fanout"}); err == nil {
		t.Error("a failed write was reported as written")
	}
	if reads.Load() != 4 || writes.Load() != 1 {
		t.Errorf("%d reads, %d writes", reads.Load(), writes.Load())
	}
}

// A node that had too little time to start a quorum queue has forgotten it, and is asked again.
func TestDeclarationsThatABusyNodeRefusesAreRepeated(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	var refused atomic.Int32
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodPut && refused.Add(1) < 3 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"bad_request","reason":"Cannot declare quorum queue 'q' in vhost '/': cluster_not_formed"}`))
			return
		}
		api.ServeHTTP(w, r)
	}))
	created, err := c.PutQueue(t.Context(), b.Vhost, "q", topology.Queue{Type: topology.Quorum})
	if err != nil || !created || refused.Load() != 3 {
		t.Errorf("created: %t, %v, after %d requests", created, err, refused.Load())
	}
	_, err = c.PutQueue(t.Context(), b.Vhost, "q", topology.Queue{Type: topology.Classic})
	if err == nil || !strings.Contains(err.Error(), "inequivalent arg") || refused.Load() != 4 {
		t.Errorf("another refusal: %v, after %d requests", err, refused.Load())
	}
}

func TestErrorsNameTheBrokersReasonAndNoCredentials(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":"bad_request","reason":"inequivalent arg"}`:        "inequivalent arg",
		`{"error":"bad_request","reason":["no_such_exchange",".*"]}`: `["no_such_exchange",".*"]`,
		`{"error":"Object Not Found"}`:                               "Object Not Found",
		`not JSON`:                                                   "400 Bad Request",
	} {
		err := answer{method: http.MethodPut, path: "/api/queues/%2F/q", status: http.StatusBadRequest, content: []byte(body)}.failure()
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s", body, err)
		}
	}
	if _, err := New(Config{Endpoint: "http://guest:secret@localhost:15672"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	c, err := New(Config{Endpoint: "http://127.0.0.1:1", Username: "guest", Password: "secret"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.User(ctx); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// A redirection that were followed would turn a DELETE into a GET, and report it as done.
func TestRedirectionsAreErrors(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("https://user:secret@broker.example.com:15671/", http.StatusMovedPermanently))
	t.Cleanup(server.Close)
	c, err := New(Config{Endpoint: server.URL, Username: "guest", Password: "guest"})
	require.NoError(t, err)
	err = c.DeletePolicy(t.Context(), "/", "p")
	if err == nil || !strings.Contains(err.Error(), "broker.example.com:15671") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
