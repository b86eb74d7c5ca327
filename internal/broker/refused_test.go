package broker

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A queue cannot be looked into without a connection, which limits may refuse. A permission that is missing is another matter.
func TestConnectionsThatLimitsRefuse(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "q", "quorum", nil)
	c := newClient(t, b, b.Endpoint)
	limit := b.Path("vhost-limits", "max-connections")
	b.Call(t, http.MethodPut, limit, map[string]any{"value": 0}, nil)
	_, err := c.HoldsMessage(t.Context(), b.Vhost, "q")
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the limit max-connections of the vhost is 0") {
		t.Errorf("got %v", err)
	}
	b.Call(t, http.MethodDelete, limit, nil, nil)
	if holds, err := c.HoldsMessage(t.Context(), b.Vhost, "q"); holds || err != nil {
		t.Errorf("got %t, %v", holds, err)
	}
	name, password := b.User(t, "policymaker", ".*", ".*", "^$")
	without, err := New(Config{Endpoint: b.Endpoint, Username: name, Password: password})
	require.NoError(t, err)
	if _, err := without.HoldsMessage(t.Context(), b.Vhost, "q"); err == nil || errors.As(err, &refused) {
		t.Errorf("without the permission: %v", err)
	}
}

// The management API cannot list a binding whose key has a ~ inside and that has arguments, nor any list that has it.
func TestBindingThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]topology.Binding{
		`the queue "other"`:         {Source: "amq.topic", Destination: "other", RoutingKey: "a~b", Arguments: topology.Arguments{"x": int64(1)}},
		`the exchange "amq.fanout"`: {Source: "amq.direct", Destination: "amq.fanout", ToExchange: true, RoutingKey: "a~b", Arguments: topology.Arguments{"x": int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			c := newClient(t, b, b.Endpoint)
			for _, queue := range []string{"one", "other"} {
				b.DeclareQueue(t, queue, "quorum", nil)
			}
			for _, fine := range []topology.Binding{
				{Source: "amq.topic", Destination: "one", RoutingKey: "a~b"},
				{Source: "amq.topic", Destination: "one", RoutingKey: "~", Arguments: topology.Arguments{"x": int64(1)}},
			} {
				require.NoError(t, c.Bind(t.Context(), b.Vhost, fine))
			}
			if _, err := c.List(t.Context(), b.Vhost); err != nil {
				t.Fatal(err)
			}
			_ = c.Bind(t.Context(), b.Vhost, bad) // is made, and answered with 500
			want := `from the exchange "` + bad.Source + `" to ` + name
			if _, err := c.List(t.Context(), b.Vhost); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v instead of %s", err, want)
			}
		})
	}
}
