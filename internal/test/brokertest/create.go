package brokertest

import (
	"maps"
	"net/http"
	"net/url"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create makes objects in the virtual host. Policies come first, so that they apply to a queue from the start.
func (b *Broker) Create(t testing.TB, objects topology.Topology) {
	t.Helper()
	for name, p := range objects.Policies {
		b.PutPolicy(t, "policies", name, p)
	}
	for name, e := range objects.Exchanges {
		b.Call(t, http.MethodPut, b.Path("exchanges", name), map[string]any{
			"type": e.Type, "durable": !e.Transient, "auto_delete": e.AutoDelete, "internal": e.Internal, "arguments": notNull(e.Arguments),
		}, nil)
	}
	for name, q := range objects.Queues {
		arguments := notNull(q.Arguments)
		arguments["x-queue-type"] = q.Type
		b.Call(t, http.MethodPut, b.Path("queues", name), map[string]any{
			"durable": !q.Transient, "auto_delete": q.AutoDelete, "arguments": arguments,
		}, nil)
	}
	for _, binding := range objects.Bindings {
		b.Bind(t, binding)
	}
}

// PutPolicy writes a policy. Its kind is "policies" or "operator-policies".
func (b *Broker) PutPolicy(t testing.TB, kind, name string, p topology.Policy) {
	t.Helper()
	b.Call(t, http.MethodPut, b.Path(kind, name), map[string]any{
		"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition,
	}, nil)
}

// Bind makes a binding.
func (b *Broker) Bind(t testing.TB, binding topology.Binding) {
	t.Helper()
	kind := "q"
	if binding.ToExchange {
		kind = "e"
	}
	b.Call(t, http.MethodPost, b.Path("bindings", "e", binding.Source, kind, binding.Destination), map[string]any{
		"routing_key": binding.RoutingKey, "arguments": notNull(binding.Arguments),
	}, nil)
}

// Unbind deletes all bindings from an exchange to a queue, of the kind "q", or to an exchange, of the kind "e".
func (b *Broker) Unbind(t testing.TB, source, kind, destination string) {
	t.Helper()
	path := b.Path("bindings", "e", source, kind, destination)
	var found []struct {
		Key string `json:"properties_key"`
	}
	b.Call(t, http.MethodGet, path, nil, &found)
	for _, binding := range found {
		b.Call(t, http.MethodDelete, path+"/"+url.PathEscape(binding.Key), nil, nil)
	}
}

// notNull copies arguments, since brokers fail if they are null.
func notNull(arguments topology.Arguments) map[string]any {
	copied := map[string]any{}
	maps.Copy(copied, arguments)
	return copied
}
