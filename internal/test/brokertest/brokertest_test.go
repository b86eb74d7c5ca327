package brokertest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func TestVhostIsPrivateAndDeleted(t *testing.T) {
	t.Parallel()
	outer := brokertest.New(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		b := brokertest.New(t)
		name = b.Vhost
		if !strings.HasPrefix(name, "TestVhostIsPrivateAndDeleted.inner-") {
			t.Errorf("vhost %q is not named after the test", name)
		}
		if name == outer.Vhost {
			t.Errorf("two tests share the vhost %q", name)
		}
		b.Channel(t)
		b.Dial(t)
		if status, _ := b.Request(t, http.MethodGet, b.Path("vhosts"), nil); status != http.StatusOK {
			t.Errorf("GET %s: %d", b.Path("vhosts"), status)
		}
	})
	if status, _ := outer.Request(t, http.MethodGet, "/api/vhosts/"+name, nil); status != http.StatusNotFound {
		t.Errorf("the vhost %q is still there: %d", name, status)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "needs/escaping %2F ü")
	queue := "a/b %"
	b.DeclareQueue(t, queue, "classic", nil)
	if _, ok := b.Get(t, queue); ok {
		t.Error("got a message from an empty queue")
	}

	b.Publish(t, "", queue, amqp.Publishing{Body: []byte("1")})

	delivery, ok := b.Get(t, queue)
	if !ok || string(delivery.Body) != "1" {
		t.Errorf("got %q, %t", delivery.Body, ok)
	}
	if _, ok := b.Get(t, queue); ok {
		t.Error("the message is still there")
	}
}

func TestPublishFailsTheTest(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for name, c := range map[string]struct{ exchange, want string }{
		"no queue":    {"amq.direct", "NO_ROUTE"},
		"no exchange": {"missing", "NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			message := failure(t, func(t testing.TB) {
				t.Helper()
				b.Publish(t, c.exchange, "key", amqp.Publishing{})
			})
			if !strings.Contains(message, c.want) {
				t.Errorf("failed with %q, want %s", message, c.want)
			}
		})
	}
}

func TestSharedConnectionIsRenewed(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "q", "classic", nil)
	b.Channel(t)
	brokertest.Eventually(t, func() error { // the API lists a connection with its next statistics
		var connections []struct{ Name string }
		if _, list := b.Request(t, http.MethodGet, b.Path("vhosts")+"/connections", nil); json.Unmarshal(list, &connections) != nil {
			return fmt.Errorf("connections: %s", list)
		}
		if len(connections) == 0 {
			return errors.New("no connection is listed")
		}
		b.Request(t, http.MethodDelete, "/api/connections/"+url.PathEscape(connections[0].Name), nil)
		return nil
	})

	b.Publish(t, "", "q", amqp.Publishing{})
	if _, ok := b.Get(t, "q"); !ok {
		t.Error("no message")
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	name, password := b.User(t, "management", "^mine$", "", ".*")

	u, err := url.Parse(b.URI)
	require.NoError(t, err)
	u.User = url.UserPassword(name, password)
	ch, err := (&brokertest.Broker{URI: u.String(), Vhost: b.Vhost}).Dial(t).Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("mine", true, false, false, false, nil)
	require.NoError(t, err)
	_, err = ch.QueueDeclare("other", true, false, false, false, nil)
	var refused *amqp.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, amqp.AccessRefused, refused.Code)
}

func TestVersionAtLeast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have, want string
		is         bool
	}{
		{"3.10.8", "3.10", true},
		{"3.10.8", "3.9", true},
		{"3.10.8", "3.10.9", false},
		{"4.0.0-rc.1", "4.0", true},
		{"4.3", "4.3.1", false},
	} {
		b := &brokertest.Broker{Version: c.have}
		if got := b.VersionAtLeast(c.want); got != c.is {
			t.Errorf("%s at least %s: %t", c.have, c.want, got)
		}
	}
}

func TestEventually(t *testing.T) {
	t.Parallel()
	calls := 0
	brokertest.Eventually(t, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
}

//nolint:paralleltest // others are patient
func TestPatienceEnds(t *testing.T) {
	patience := brokertest.Patience
	t.Cleanup(func() { brokertest.Patience = patience })
	brokertest.Patience = 0
	message := failure(t, func(t testing.TB) {
		t.Helper()
		brokertest.Eventually(t, func() error { return errors.New("the last error") })
	})
	if !strings.Contains(message, "the last error") {
		t.Errorf("failed with %q", message)
	}
}

func TestNoBrokerIsAFailure(t *testing.T) {
	t.Setenv("RABBITMQ_ENDPOINT", "")
	message := failure(t, func(t testing.TB) {
		t.Helper()
		brokertest.New(t)
	})
	if !strings.Contains(message, "make test") {
		t.Errorf("failed with %q, which does not say what to do", message)
	}
}

// failure is the message of a helper that fails a test.
func failure(t *testing.T, helper func(testing.TB)) string {
	t.Helper()
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		helper(f)
	}()
	<-done
	if f.message == "" {
		t.Error("the helper did not fail")
	}
	return f.message
}

type failing struct {
	testing.TB
	message string
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", args...) }

func (f *failing) Fatalf(format string, args ...any) {
	f.message = strings.TrimSpace(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// A test server makes the fault, since a broker cannot be made to answer like this.
func TestRequestsThatFailAreSentAgain(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]struct{ status, requests int }{
		http.MethodDelete: {http.StatusNoContent, 2},
		http.MethodGet:    {http.StatusNotFound, 2},
		http.MethodPost:   {http.StatusInternalServerError, 1},
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests++; requests == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			w.WriteHeader(http.StatusNotFound)
		}))
		status, _ := (&brokertest.Broker{Endpoint: server.URL}).Request(t, method, "/api/queues/v/q", nil)
		server.Close()
		if status != want.status || requests != want.requests {
			t.Errorf("%s: %d after %d requests, want %d after %d", method, status, requests, want.status, want.requests)
		}
	}
}
