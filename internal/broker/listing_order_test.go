package broker

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Somebody binds a queue and then writes its policy while a vhost is listed: who sees the policy sees the binding.
func TestNoPolicyIsListedBeforeItsBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "q", "classic", nil)
	direct := newClient(t, b, b.Endpoint)
	written := make(chan struct{})
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if strings.Contains(r.URL.Path, "/policies/") {
			select {
			case <-written:
			case <-time.After(time.Second): // nobody lists bindings before
			}
		}
		api.ServeHTTP(w, r)
		if strings.Contains(r.URL.Path, "/bindings/") {
			if err := direct.Bind(t.Context(), b.Vhost, topology.Binding{Source: "amq.direct", Destination: "q", RoutingKey: "k"}); err != nil {
				t.Error(err)
			}
			if _, err := direct.PutPolicy(t.Context(), b.Vhost, "p", topology.Policy{
				Pattern: "q", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(9)},
			}); err != nil {
				t.Error(err)
			}
			close(written)
		}
	}))
	vhost, err := c.List(t.Context(), b.Vhost)
	require.NoError(t, err)
	if _, listed := vhost.Policies["p"]; listed {
		t.Errorf("the policy is listed with these bindings only: %v", vhost.Bindings)
	}
}
