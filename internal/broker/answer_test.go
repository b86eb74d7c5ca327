package broker

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const page = "<html>\n<head><title>nginx</title></head></html>"

// What does not exist is recognised by RabbitMQ's own words.
func TestBrokerSaysWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	toQueue, toExchange := topology.Binding{Source: "none", Destination: "none"}, topology.Binding{Source: "none", Destination: "no/ne", ToExchange: true}
	paths := map[string][]string{
		http.MethodDelete: {
			path("exchanges", b.Vhost, "no/ne"), path("queues", b.Vhost, "no/ne"), path("queues", b.Vhost, "none") + "?if-empty=true",
			path("policies", b.Vhost, "no/ne"), bindingsPath(b.Vhost, toQueue) + "/~", bindingsPath(b.Vhost, toExchange) + "/no%2Fne",
		},
		http.MethodGet: {path("queues", b.Vhost, "no/ne")},
	}
	for _, kind := range []string{"exchanges", "queues", "bindings", "policies", "operator-policies"} {
		paths[http.MethodGet] = append(paths[http.MethodGet], path(kind, b.Vhost+"/none"))
	}
	for method, missing := range paths {
		for _, address := range missing {
			if _, err := c.do(t.Context(), method, address, nil, nil); !IsNotFound(err) {
				t.Errorf("%s %s: got %v", method, address, err)
			}
		}
	}
	if err := c.Bind(t.Context(), b.Vhost, toQueue); !IsNotFound(err) {
		t.Errorf("binding: got %v", err)
	}
	if _, err := c.PutExchange(t.Context(), b.Vhost+"/none", "x", topology.Exchange{Type: "fanout"}); !IsNotFound(err) {
		t.Errorf("vhost: got %v", err)
	}
	if err := c.requirePathsKept(t.Context()); err != nil {
		t.Error(err)
	}
	refused, err := New(Config{Endpoint: b.Endpoint, Username: b.Username, Password: "wrong"})
	require.NoError(t, err)
	if _, err := refused.User(t.Context()); !IsUnauthorized(err) {
		t.Errorf("user: got %v", err)
	}
}

// Brokers answer 401 to unknown users and wrong passwords as well as to missing tags and permissions, in other words.
// Before 4.3 they escape what they quote; from 4.3.3 on a vhost that the user may not see does not exist.
func TestRefusalsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	withoutTags, password := b.User(t, "", "", "", "")
	elsewhere, anotherPassword := b.User(t, "management", "", "", "")
	b.Call(t, http.MethodDelete, b.Path("permissions", elsewhere), nil, nil)
	mayNotConfigure, itsPassword := b.User(t, "management", "^$", "^$", "^$")
	hidden, wantHidden := IsUnauthorized, "The user has no permissions in the vhost"
	if b.VersionAtLeast("4.3.3") {
		hidden, wantHidden = IsNotFound, "404 Not Found"
	}
	for name, c := range map[string]struct {
		user, password string
		is             func(error) bool
		want           string
	}{
		"wrong password": {b.Username, "wrong", IsUnauthorized, "set username and password"},
		"unknown user":   {"nobody of that name", "wrong", IsUnauthorized, "set username and password"},
		"no tag":         {withoutTags, password, IsUnauthorized, "lacks a tag, or a permission"},
		"no vhost":       {elsewhere, anotherPassword, hidden, wantHidden},
		"no permission":  {mayNotConfigure, itsPassword, IsUnauthorized, `configure on "x" in the vhost`},
	} {
		client, err := New(Config{Endpoint: b.Endpoint, Username: c.user, Password: c.password})
		require.NoError(t, err)
		_, err = client.PutExchange(t.Context(), b.Vhost, "x", topology.Exchange{Type: "fanout"})
		if !c.is(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), "..") {
			t.Errorf("%s: two full stops: %v", name, err)
		}
	}
	client, err := New(Config{Endpoint: b.Endpoint, Username: b.Username, Password: b.Password})
	require.NoError(t, err)
	_, err = client.PutPolicy(t.Context(), b.Vhost, "p", topology.Policy{Pattern: "x", ApplyTo: "queues", Definition: topology.Arguments{"nonsense": "a"}})
	if err == nil || !strings.HasSuffix(err.Error(), `[{<<"nonsense">>,<<"a">>}] are not recognised policy settings`) {
		t.Errorf("%v", err)
	}
}

// A proxy, or an ingress without a backend, knows nothing of what exists.
func TestNotFoundOfAProxyIsNone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		page, "", "404 page not found\n", "{}", `[]`, `"error"`, `{"message":"no Route matched with those values"}`,
		`{"status":404,"error":"Not Found","path":"/api"}`, `{"error":{"reason":"none"},"reason":"none"}`, `{"error":"no backend","reason":"none"}`,
	} {
		err := answer{method: http.MethodDelete, path: "/api/queues/v/q", status: http.StatusNotFound, content: []byte(body)}.failure()
		if IsNotFound(err) || IsUnanswered(err) || !strings.Contains(err.Error(), "not answered by RabbitMQ") || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("%s: got %v", body, err)
		}
	}
	b := brokertest.New(t)
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) { http.NotFound(w, r) }))
	_, read := c.Queue(t.Context(), b.Vhost, "q")
	_, listed := c.List(t.Context(), b.Vhost)
	for what, err := range map[string]error{
		"read": read, "list": listed, "delete": c.DeleteQueue(t.Context(), b.Vhost, "q", topology.Quorum),
		"unbind": c.Unbind(t.Context(), b.Vhost, topology.Binding{Source: "x", Destination: "q", PropertiesKey: "~"}),
	} {
		if err == nil || IsNotFound(err) || !strings.Contains(err.Error(), "404 page not found") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// Only the broker can say that something was written or is there.
func TestSuccessOfAProxyIsNone(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
		for _, a := range []answer{{status: http.StatusOK}, {status: http.StatusOK, content: []byte(page)}, {status: http.StatusCreated, content: []byte(page)}} {
			a.method = method
			if err := a.failure(); !IsUnanswered(err) {
				t.Errorf("%s, %d: got %v", method, a.status, err)
			}
		}
	}
	for _, body := range []string{page, "", "null", "[]", `[{"name":"q"}] more`, `{"login":"required"}`} {
		b := brokertest.New(t)
		c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = fmt.Fprint(w, body) }))
		_, user := c.User(t.Context())
		_, queue := c.Queue(t.Context(), b.Vhost, "q")
		_, list := c.List(t.Context(), b.Vhost)
		if body == "[]" {
			list = user // a vhost without anything
		}
		for what, err := range map[string]error{"user": user, "queue": queue, "list": list} {
			if err == nil || !strings.Contains(err.Error(), "not answered by RabbitMQ") {
				t.Errorf("%s: %s: got %v", body, what, err)
			}
		}
	}
}

// Reads are repeated, and the error says what to look at. Whether a write took effect is not known.
func TestGatewayThatDoesNotReachTheBroker(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var reads, writes atomic.Int32
			b := brokertest.New(t)
			c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
				if r.Method == http.MethodGet {
					reads.Add(1)
				} else {
					writes.Add(1)
				}
				http.Error(w, page, status)
			}))
			if _, err := c.Queue(t.Context(), b.Vhost, "q"); err == nil || reads.Load() != 5 || !strings.Contains(err.Error(), "check that RabbitMQ runs") {
				t.Errorf("%d reads: %v", reads.Load(), err)
			}
			if err := c.DeletePolicy(t.Context(), b.Vhost, "p"); !IsUnanswered(err) || writes.Load() != 1 {
				t.Errorf("%d writes: %v", writes.Load(), err)
			}
		})
	}
}

// An answer that breaks off is as good as none: a read is repeated, and of a write nothing is known.
func TestAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	var reads, writes atomic.Int32
	b := brokertest.New(t)
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodGet && reads.Add(1) > 2 {
			api.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet {
			writes.Add(1)
		}
		w.Header().Set("Content-Length", "100")
		_, _ = fmt.Fprint(w, `{"name":"`)
	}))
	if user, err := c.User(t.Context()); err != nil || user.Name != b.Username || reads.Load() != 4 {
		t.Errorf("%d reads: %+v, %v", reads.Load(), user, err)
	}
	if err := c.DeletePolicy(t.Context(), b.Vhost, "p"); !IsUnanswered(err) || writes.Load() != 1 {
		t.Errorf("%d writes: %v", writes.Load(), err)
	}
}

// A read that hangs is repeated once: a server that accepts connections and says nothing is an error then.
func TestReadThatHangs(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	b := brokertest.New(t)
	c := newClient(t, b, b.Behind(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		reads.Add(1)
		<-r.Context().Done()
	}))
	c.http = repeating(&http.Client{Timeout: 200 * time.Millisecond})
	if _, err := c.User(t.Context()); err == nil || reads.Load() != maxTimeouts || !strings.Contains(err.Error(), "check that RabbitMQ runs") {
		t.Errorf("%d reads: %v", reads.Load(), err)
	}
}
