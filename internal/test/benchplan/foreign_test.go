//go:build bench

package benchplan

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// foreignKeys has the binding keys of others: each queue's own, and of what kinds.
var foreignKeys = map[string]func(i int) string{
	"literal":  func(i int) string { return fmt.Sprintf("k.%d", i) },
	"wildcard": func(i int) string { return fmt.Sprintf([]string{"*.k%d.#", "k%d.*", "#.k%d"}[i%3], i) },
	"chain":    func(i int) string { return fmt.Sprintf("k.%d", i) },
}

// definitions are what the management API imports.
type definitions struct {
	Exchanges []map[string]any `json:"exchanges,omitempty"`
	Queues    []map[string]any `json:"queues,omitempty"`
	Bindings  []map[string]any `json:"bindings,omitempty"`
	Policies  []map[string]any `json:"policies,omitempty"`
}

// importForeign makes n queues of others, each with a binding of its own to a topic exchange. In a chain, the exchange is
// the last of three, and 500 policies match one queue each.
func importForeign(t testing.TB, b *brokertest.Broker, vhost, kind string, n int) {
	t.Helper()
	if kind == "" {
		return
	}
	var d definitions
	chain := []string{"events"}
	if kind == "chain" {
		chain = []string{"events", "regions", "shops"}
		for i := range 500 {
			d.Policies = append(d.Policies, map[string]any{
				"name": fmt.Sprintf("foreign-%03d", i), "pattern": fmt.Sprintf(`^foreign\.%d$`, i), "apply-to": "queues",
				"priority": i % 10, "definition": map[string]any{"max-length": 100_000},
			})
		}
	}
	for i, name := range chain {
		d.Exchanges = append(d.Exchanges, map[string]any{
			"name": name, "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": map[string]any{},
		})
		if i > 0 {
			d.Bindings = append(d.Bindings, binding(chain[i-1], name, "exchange", "#"))
		}
	}
	const most = 2000
	for i := range n {
		queue, key := fmt.Sprintf("foreign.%d", i), foreignKeys[kind](i)
		d.Queues = append(d.Queues, map[string]any{
			"name": queue, "durable": true, "auto_delete": false, "arguments": map[string]any{"x-queue-type": "classic"},
		})
		d.Bindings = append(d.Bindings, binding(chain[len(chain)-1], queue, "queue", key))
		if len(d.Queues) == most || i == n-1 {
			send(t, b, [][]call{{{http.MethodPost, api("definitions", vhost), d}}})
			d = definitions{}
		}
	}
}

func binding(source, destination, kind, key string) map[string]any {
	return map[string]any{
		"source": source, "destination": destination, "destination_type": kind, "routing_key": key, "arguments": map[string]any{},
	}
}

func TestMain(m *testing.M) { benchtest.Main(m, &metered{}) }
