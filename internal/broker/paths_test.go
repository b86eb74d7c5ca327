package broker

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Behind a proxy that decodes slashes, the list of the vhost "/" is that of all vhosts, and what has a slash in its
// name exists nowhere. Neither may be believed.
func TestProxyThatDecodesPaths(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"plain", "with/slash"} {
		b := brokertest.NewNamed(t, prefix)
		direct, c := newClient(t, b, b.Endpoint), newClient(t, b, b.Decoding(t))
		policy := topology.Policy{Pattern: "^q$", ApplyTo: "queues", Definition: topology.Arguments{"max-length": 9}}
		if _, err := direct.PutPolicy(t.Context(), b.Vhost, "a/b", policy); err != nil {
			t.Fatal(err)
		}
		if _, err := direct.PutQueue(t.Context(), b.Vhost, "a/b", topology.Queue{Type: topology.Classic}); err != nil {
			t.Fatal(err)
		}
		_, all := c.List(t.Context(), "/")
		_, queues := c.Queues(t.Context(), "/")
		_, queue := c.Queue(t.Context(), b.Vhost, "a/b")
		_, put := c.PutPolicy(t.Context(), b.Vhost, "a/c", policy)
		for what, err := range map[string]error{
			"list": all, "queues": queues, "queue": queue, "write": put,
			"delete": c.DeletePolicy(t.Context(), b.Vhost, "a/b"),
			"unbind": c.Unbind(t.Context(), b.Vhost, topology.Binding{Destination: "a/b", Source: "amq.direct", PropertiesKey: "~"}),
		} {
			if err == nil || IsNotFound(err) || !strings.Contains(err.Error(), "%2F") || !strings.Contains(err.Error(), "nginx") {
				t.Errorf("%s: %s: got %v", prefix, what, err)
			}
		}
		b.Call(t, http.MethodGet, b.Path("policies", "a/b"), nil, nil) // it was not deleted
	}
}

// An answer about something else than was asked for, such as one from a cache, says nothing.
func TestAnswersAboutSomethingElse(t *testing.T) {
	t.Parallel()
	b, other := brokertest.New(t), brokertest.New(t)
	other.DeclareQueue(t, "q", topology.Classic, nil)
	b.DeclareQueue(t, "r", topology.Classic, nil)
	for kind, name := range map[string]string{"exchanges": "x", "queues": "q", "policies": "p", "operator-policies": "p"} {
		body := map[string]any{"type": "fanout", "pattern": "^q$", "apply-to": "queues", "definition": map[string]any{"max-length": 9}}
		if kind != "queues" {
			other.Call(t, http.MethodPut, other.Path(kind, name), body, nil)
		}
	}
	for _, kind := range []string{"exchanges", "queues", "bindings", "policies", "operator-policies"} {
		c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if strings.HasPrefix(r.URL.Path, "/api/"+kind+"/") {
				r.URL.Path = strings.Replace(r.URL.Path, b.Vhost, other.Vhost, 1)
			}
			api.ServeHTTP(w, r)
		}))
		if _, err := c.List(t.Context(), b.Vhost); err == nil || !strings.Contains(err.Error(), other.Vhost) {
			t.Errorf("%s: got %v", kind, err)
		}
		binding := topology.Binding{Destination: "q"}
		if err := c.Unbind(t.Context(), b.Vhost, binding); kind == "bindings" && (err == nil || !strings.Contains(err.Error(), other.Vhost)) {
			t.Errorf("unbind: got %v", err)
		}
	}
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		r.URL.Path = b.Path("queues", "r")
		api.ServeHTTP(w, r)
	}))
	if _, err := c.Queue(t.Context(), b.Vhost, "s"); err == nil || !strings.Contains(err.Error(), `queue "r"`) {
		t.Errorf("got %v", err)
	}
}
