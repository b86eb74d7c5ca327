package delayedexchange_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest/drift"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestAcc_DriftOfEveryAttribute(t *testing.T) {
	t.Parallel()
	drift.Check(t, subjects)
}

func TestDriftMatrixIsComplete(t *testing.T) {
	t.Parallel()
	drift.CheckComplete(t, subjects("v"))
}

// subjects is a delayed exchange with levels that no message leaves during a test, and objects of others that are bound to
// its objects.
func subjects(vhost string) map[string]drift.Subject {
	e := delayed.Exchange{
		Name: "events", Vhost: vhost, Type: "topic", PolicyPriority: 500,
		MaxDelay: pipeline.Delay{Wait: 12 * time.Hour, Spelling: "12h"}, Precision: pipeline.Delay{Wait: 4 * time.Hour, Spelling: "240m"},
	}
	wanted := e.Expand()
	return map[string]drift.Subject{"delayed": {
		Type: resourceType, Wanted: wanted,
		Config: map[string]any{
			"name": e.Name, "vhost": vhost, "type": e.Type, "policy_priority": e.PolicyPriority,
			"max_delay": e.MaxDelay.Spelling, "precision": e.Precision.Spelling,
		},
		Queues:  slices.DeleteFunc(slices.Sorted(maps.Keys(wanted.Queues)), func(queue string) bool { return queue == e.Names().Refused() }),
		Foreign: addForeign,
		Alike:   func(_, _ topology.Binding) bool { return true },
	}}
}

// addForeign adds objects of others. They receive messages that are due or not routed, or lead to the exchange. It also adds
// policies, one with a name that begins like the delayed exchange's.
func addForeign(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	for _, exchange := range []string{"foreign", "foreign.due"} {
		b.Call(t, http.MethodPut, b.Path("exchanges", exchange), map[string]any{"type": "topic", "durable": true}, nil)
	}
	b.DeclareQueue(t, "foreign.audit", "quorum", nil)
	for _, ends := range [][3]string{
		{"events.deliver", "q", "foreign.audit"},
		{"events.deliver", "e", "foreign.due"},
		{"events.delay.unrouted", "q", "foreign.audit"},
		{"foreign", "e", "events"},
	} {
		body := map[string]any{"routing_key": "foreign.#", "arguments": map[string]any{"who": "foreign", "version": 2}}
		b.Call(t, http.MethodPost, b.Path("bindings", "e", ends[0], ends[1], ends[2]), body, nil)
	}
	for _, name := range []string{"foreign", "delay/events.more/queues"} {
		b.Call(t, http.MethodPut, b.Path("policies", name), map[string]any{
			"pattern": "^foreign", "apply-to": "queues", "priority": 3, "definition": map[string]any{"max-length": 12345},
		}, nil)
	}
}
