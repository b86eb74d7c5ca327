package broker

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// everyField has each field of each kind of object set in one of them.
func everyField() topology.Topology {
	arguments := topology.Arguments{
		"x-text": "ü", "x-number": int64(7), "x-flag": true, "x-list": []any{"a", int64(1)}, "x-table": map[string]any{"k": "v"},
	}
	return topology.Topology{
		Exchanges: map[string]topology.Exchange{
			"plain":       {Type: "direct"},
			"transient":   {Type: "fanout", Transient: true},
			"auto delete": {Type: "topic", AutoDelete: true},
			"internal":    {Type: "headers", Internal: true},
			"arguments":   {Type: "fanout", Arguments: arguments},
		},
		Queues: map[string]topology.Queue{
			"quorum":      {Type: topology.Quorum},
			"classic":     {Type: topology.Classic},
			"transient":   {Type: topology.Classic, Transient: true},
			"auto delete": {Type: topology.Classic, AutoDelete: true},
			"arguments":   {Type: topology.Classic, Arguments: topology.Arguments{"x-message-ttl": int64(1000), "x-dead-letter-exchange": "plain"}},
		},
		Bindings: []topology.Binding{
			{Source: "plain", Destination: "quorum", RoutingKey: "a/b %"},
			{Source: "plain", Destination: "internal", ToExchange: true, RoutingKey: "k"},
			{Source: "internal", Destination: "classic", Arguments: arguments},
		},
		Policies: map[string]topology.Policy{
			"all/of it": {Pattern: "^q", ApplyTo: "queues", Priority: 3, Definition: topology.Arguments{"max-length": int64(9), "overflow": "reject-publish"}},
		},
	}
}

// What is written is what is read: otherwise a plan would never be empty.
func TestEveryFieldIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	wanted := everyField()
	put(t, c, b.Vhost, wanted)
	before, err := c.List(t.Context(), b.Vhost)
	require.NoError(t, err)
	live := before.Topology
	for name := range live.Exchanges {
		if _, ours := wanted.Exchanges[name]; !ours {
			delete(live.Exchanges, name) // the broker's own
		}
	}
	var bindings []topology.Binding
	for _, binding := range live.Bindings {
		if binding.Source != "" {
			bindings = append(bindings, binding)
		}
	}
	live.Bindings = bindings
	if changes := topology.Diff(wanted, live); !changes.Empty() {
		t.Errorf("read is something else than was written: %+v", changes)
	}
	// Written again, nothing is new, and nothing is refused.
	put(t, c, b.Vhost, live)
}

func put(t *testing.T, c *Client, vhost string, objects topology.Topology) {
	t.Helper()
	for name, exchange := range objects.Exchanges {
		if _, err := c.PutExchange(t.Context(), vhost, name, exchange); err != nil {
			t.Errorf("exchange %s: %v", name, err)
		}
	}
	for name, queue := range objects.Queues {
		if _, err := c.PutQueue(t.Context(), vhost, name, queue); err != nil {
			t.Errorf("queue %s: %v", name, err)
		}
	}
	for _, binding := range objects.Bindings {
		if err := c.Bind(t.Context(), vhost, binding); err != nil {
			t.Errorf("binding %s: %v", binding, err)
		}
	}
	for name, policy := range objects.Policies {
		if _, err := c.PutPolicy(t.Context(), vhost, name, policy); err != nil {
			t.Errorf("policy %s: %v", name, err)
		}
	}
}

// The management API would declare an exclusive queue as one that is not, and say that it did.
func TestExclusiveQueueIsNotDeclaredAsAnother(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	_, err := c.PutQueue(t.Context(), b.Vhost, "q", topology.Queue{Type: topology.Classic, Exclusive: true})
	if !errors.Is(err, errExclusive) || IsUnanswered(err) {
		t.Errorf("got %v", err)
	}
	if status, _ := b.Request(t, http.MethodGet, b.Path("queues", "q"), nil); status != http.StatusNotFound {
		t.Errorf("the queue was declared: %d", status)
	}
}
