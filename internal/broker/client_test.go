package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func newClient(t *testing.T, b *brokertest.Broker, endpoint string) *Client {
	t.Helper()
	client, err := New(Config{Endpoint: endpoint, Username: b.Username, Password: b.Password})
	require.NoError(t, err)
	return client
}

// If a node ran out of time to start a quorum queue, it has deleted the queue, and the declaration is repeated.
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
		require.ErrorContains(t, err, want, body)
	}
	if _, err := New(Config{Endpoint: "http://guest:secret@localhost:15672"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	c, err := New(Config{Endpoint: "http://127.0.0.1:1", Username: "guest", Password: "secret"})
	require.NoError(t, err)
	if _, err := c.User(brokertest.Bounded(t)); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// A client that followed a redirection would turn a DELETE into a GET, and report success.
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

// A caller that waits while another asks about the cluster can be cancelled.
func TestWaitForTheClusterCanBeCancelled(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.URL.Path == "/api/overview" {
			close(asked)
			<-answer
		}
		api.ServeHTTP(w, r)
	}))
	first := make(chan error)
	go func() {
		_, err := c.askCluster(t.Context(), true)
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.askCluster(ctx, true); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(answer)
	require.NoError(t, <-first)
}

// A server that imitates the management API is not taken for RabbitMQ. A RabbitMQ with another name is.
func TestProducts(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	overview := func(text string) string {
		return b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if r.URL.Path != "/api/overview" {
				api.ServeHTTP(w, r)
				return
			}
			_, _ = io.WriteString(w, text)
		})
	}
	for endpoint, want := range map[string]string{
		b.Endpoint:            product.RabbitMQ,
		brokertest.LavinMQ(t): "not RabbitMQ, but LavinMQ 2.4.0",
		overview(`{"rabbitmq_version":"3.10.8"}`):                                               product.RabbitMQ,
		overview(`{"rabbitmq_version":"4.3.6","product_name":"Bunny Enterprise"}`):              "Bunny Enterprise",
		overview(`{"lavinmq_version":"2.6.0","product_name":"LavinMQ"}`):                        "not RabbitMQ, but LavinMQ 2.6.0",
		overview(`{"lavinmq_version":"9.0","product_name":"LavinMQ","rabbitmq_version":"4.3"}`): "not RabbitMQ, but LavinMQ 9.0",
		overview(`{"product_name":"Other"}`):                                                    "not RabbitMQ, but Other",
		overview(`{"broker":{"product":"OtterMQ"}}`):                                            "not RabbitMQ, but a broker without rabbitmq_version in its overview",
	} {
		c := newClient(t, b, endpoint)
		name, err := c.Product(t.Context())
		_, asUser := c.User(t.Context())
		switch {
		case !strings.HasPrefix(want, "not "):
			if name != want || err != nil || asUser != nil {
				t.Errorf("got %q, %v, %v, want %q", name, err, asUser, want)
			}
		case !product.IsOtherError(err) || !product.IsOtherError(asUser) || !strings.Contains(err.Error(), want+": RabbitMQ 3.10 or later is needed"):
			t.Errorf("got %q, %v, %v, want %q", name, err, asUser, want)
		}
	}
}

// RabbitMQ 3.13 is asked for its feature flags, with the answer that 3.13.7 gave. A user who may not read them gets 401.
func TestFeatureFlagsOfRabbitMQ313(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for version, want := range map[string]map[string]bool{
		"3.13.7": {"message_containers": true, "khepri_db": false}, "3.13.6": nil, "3.12.14": nil, "4.0.5": nil,
	} {
		endpoint := b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			switch {
			case r.URL.Path == "/api/overview":
				_, _ = fmt.Fprintf(w, `{"rabbitmq_version":%q}`, version)
			case r.URL.Path != "/api/feature-flags":
				api.ServeHTTP(w, r)
			case version == "3.13.7":
				_, _ = io.WriteString(w, `[{"desc":"Message containers.","name":"message_containers","stability":"stable","state":"enabled"},
					{"desc":"Use the new Khepri Raft-based metadata store","name":"khepri_db","stability":"experimental","state":"disabled"}]`)
			case version == "3.13.6":
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":"not_authorized","reason":"User not authorised to access object"}`)
			default:
				t.Errorf("%s was asked for feature flags", version)
			}
		})
		live, err := newClient(t, b, endpoint).List(t.Context(), b.Vhost)
		require.NoError(t, err)
		require.Equal(t, want, live.Flags, version)
	}
}

// The client closes an idle connection well before the broker does. A write at the moment of the broker's closing would
// get no answer.
func TestIdleConnectionsAreGivenUpBeforeTheBrokerClosesThem(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.Endpoint, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	fmt.Fprint(connection, "GET /api/whoami HTTP/1.1\r\nHost: broker\r\n\r\n")
	_, err = connection.Read(make([]byte, 4096))
	require.NoError(t, err)
	answered := time.Now()
	_ = connection.SetDeadline(answered.Add(5 * time.Minute)) // a busy broker is late, and later is better
	_, err = io.Copy(io.Discard, connection)
	require.NoError(t, err, time.Since(answered))
	transport, err := Config{}.transport()
	require.NoError(t, err)
	if closed := time.Since(answered); transport.IdleConnTimeout > closed/2 {
		t.Errorf("the broker closes an idle connection after %s, the client gives it up after %s", closed, transport.IdleConnTimeout)
	}
}

// A request that is cancelled while it waits for its turn was not sent, so no look-up is needed.
func TestCancelledBeforeItWasSent(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Endpoint: "http://127.0.0.1:1", Username: "guest", Password: "guest"})
	require.NoError(t, err)
	for range requestsAtOnce {
		c.requests <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.PutExchange(ctx, "/", "x", topology.Exchange{Type: "fanout"})
	if !errors.Is(err, context.Canceled) || IsUnanswered(err) {
		t.Errorf("got %v", err)
	}
}

// The list of vhosts can have gaps while others are deleted. That is no mistake.
func TestVhostsAreListedWhileOthersAreDeleted(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	listedGap := false
	c := newClient(t, b, b.After(t, func(_ *http.Request, answer *httptest.ResponseRecorder) {
		list := answer.Body.Bytes()
		listedGap = listedGap || bytes.Contains(list, []byte("[[]")) || bytes.Contains(list, []byte(",[]"))
	}))
	stop := make(chan struct{})
	churned := churnVhosts(t, b, stop)
	defer func() { close(stop); <-churned }()
	for listing := true; listing && !listedGap; {
		select {
		case <-churned:
			listing = false // this release has no gaps
		default:
		}
		vhosts, err := c.vhosts(t.Context())
		require.NoError(t, err)
		for _, v := range vhosts {
			if v.Name == b.Vhost && len(v.ClusterState) == 0 {
				t.Errorf("the nodes of %q are missing", v.Name)
			}
		}
	}
}

// churnVhosts creates and deletes vhosts for a while, or until it is stopped.
func churnVhosts(t *testing.T, b *brokertest.Broker, stop <-chan struct{}) (churned <-chan struct{}) {
	t.Helper()
	var churn sync.WaitGroup
	for i := range 3 {
		churn.Go(func() {
			for k := range 15 {
				select {
				case <-stop:
					return
				default:
				}
				vhost := path("vhosts", fmt.Sprintf("%s-%d-%d", b.Vhost, i, k))
				b.Request(t, http.MethodPut, vhost, nil)
				b.Request(t, http.MethodDelete, vhost, nil)
			}
		})
	}
	done := make(chan struct{})
	go func() { churn.Wait(); close(done) }()
	return done
}
