package drift

import (
	"maps"
	"net/http"
	"net/url"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// refusalOf is what the broker answers if it refuses to have what a fault would make, in a vhost where
// there is nothing else.
func (s Subject) refusalOf(t *testing.T, empty *brokertest.Broker, f fault) string {
	t.Helper()
	request := func(method, path string, body map[string]any) string {
		status, answer := empty.Request(t, method, path, body)
		switch {
		case status == http.StatusBadRequest:
			return string(answer)
		case status >= 300:
			t.Fatalf("%s: %s: %d %s", f.object, f.what, status, answer)
		}
		return ""
	}
	try := func(kind string, body map[string]any) string {
		refusal := request(http.MethodPut, empty.Path(kind, "by hand"), body)
		if refusal == "" {
			deleteObject(t, empty, kind, "by hand")
		}
		return refusal
	}
	for _, e := range f.change.exchange {
		return try("exchanges", exchangeBody(e))
	}
	for _, q := range f.change.queue {
		return try("queues", queueBody(q))
	}
	for _, p := range f.change.policy {
		return try("policies", policyBody(p))
	}
	if len(f.change.bind) > 0 {
		b := f.change.bind[0]
		from := s.Wanted.Exchanges[b.Source]
		empty.Call(t, http.MethodPut, empty.Path("exchanges", "by hand"), map[string]any{"type": from.Type}, nil)
		defer deleteObject(t, empty, "exchanges", "by hand")
		body := map[string]any{"routing_key": b.RoutingKey, "arguments": orEmpty(b.Arguments)}
		return request(http.MethodPost, empty.Path("bindings", "e", "by hand", "e", "by hand"), body)
	}
	return ""
}

// cause does to the broker what the fault says.
func (s *vhost) cause(t *testing.T, f fault) {
	t.Helper()
	m := f.change
	for name, e := range m.exchange {
		s.remake(t, "exchanges", name, exchangeBody(e))
	}
	for name, q := range m.queue {
		s.remake(t, "queues", name, queueBody(q))
		delete(s.holds, name)
	}
	for name, p := range m.policy {
		s.Call(t, http.MethodPut, s.Path("policies", name), policyBody(p), nil)
	}
	for _, b := range m.bind {
		bind(t, s.Broker, b)
	}
	for _, b := range m.unbind {
		s.unbind(t, b)
	}
	for name := range m.delete.Exchanges {
		deleteObject(t, s.Broker, "exchanges", name)
	}
	for name := range m.delete.Queues {
		deleteObject(t, s.Broker, "queues", name)
		delete(s.holds, name)
	}
	for name := range m.delete.Policies {
		deleteObject(t, s.Broker, "policies", name)
	}
}

// remake deletes an object, re-creates it and gives it back the bindings it had.
func (s *vhost) remake(t *testing.T, kind, name string, body map[string]any) {
	t.Helper()
	var all []boundBinding
	s.Call(t, http.MethodGet, s.Path("bindings"), nil, &all)
	deleteObject(t, s.Broker, kind, name)
	s.Call(t, http.MethodPut, s.Path(kind, name), body, nil)
	for _, b := range all {
		if endsAt(b.binding(), kind, name) {
			bind(t, s.Broker, b.binding())
		}
	}
}

// boundBinding is a binding as the management API tells it.
type boundBinding struct {
	Source        string             `json:"source"`
	Destination   string             `json:"destination"`
	Kind          string             `json:"destination_type"`
	Key           string             `json:"routing_key"`
	Arguments     topology.Arguments `json:"arguments"`
	PropertiesKey string             `json:"properties_key"`
}

func (b boundBinding) binding() topology.Binding {
	return topology.Binding{
		Source: b.Source, Destination: b.Destination, ToExchange: b.Kind == "exchange", RoutingKey: b.Key, Arguments: b.Arguments,
	}
}

// endsAt reports whether a binding dies with an object.
func endsAt(b topology.Binding, kind, name string) bool {
	toExchange := kind == "exchanges"
	return b.Source != "" && (toExchange && b.Source == name || b.ToExchange == toExchange && b.Destination == name)
}

func deleteObject(t *testing.T, b *brokertest.Broker, kind, name string) {
	t.Helper()
	b.Call(t, http.MethodDelete, b.Path(kind, name), nil, nil)
}

func bind(t *testing.T, b *brokertest.Broker, wanted topology.Binding) {
	t.Helper()
	body := map[string]any{"routing_key": wanted.RoutingKey, "arguments": orEmpty(wanted.Arguments)}
	b.Call(t, http.MethodPost, pathOf(b, wanted), body, nil)
}

// pathOf is the path of all bindings with the ends of one.
func pathOf(b *brokertest.Broker, binding topology.Binding) string {
	to := "q"
	if binding.ToExchange {
		to = "e"
	}
	return b.Path("bindings", "e", binding.Source, to, binding.Destination)
}

func (s *vhost) unbind(t *testing.T, b topology.Binding) {
	t.Helper()
	path := pathOf(s.Broker, b)
	var found []boundBinding
	s.Call(t, http.MethodGet, path, nil, &found)
	for _, candidate := range found {
		if candidate.Key == b.RoutingKey && orEmpty(candidate.Arguments).Key() == orEmpty(b.Arguments).Key() {
			s.Call(t, http.MethodDelete, path+"/"+url.PathEscape(candidate.PropertiesKey), nil, nil)
			return
		}
	}
	t.Fatalf("there is no binding %q", b)
}

func exchangeBody(e topology.Exchange) map[string]any {
	return map[string]any{
		"type": e.Type, "durable": !e.Transient, "auto_delete": e.AutoDelete, "internal": e.Internal, "arguments": orEmpty(e.Arguments),
	}
}

func queueBody(q topology.Queue) map[string]any {
	arguments := topology.Arguments{"x-queue-type": q.Type}
	maps.Copy(arguments, q.Arguments)
	return map[string]any{"durable": !q.Transient, "auto_delete": q.AutoDelete, "arguments": arguments}
}

func policyBody(p topology.Policy) map[string]any {
	return map[string]any{"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": orEmpty(p.Definition)}
}

func orEmpty(arguments topology.Arguments) topology.Arguments {
	if arguments == nil {
		return topology.Arguments{}
	}
	return arguments
}
