package provider_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// The states of 0.1 plan empty with every later release.
func TestAcc_StatesOf01PlanEmpty(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	written, err := os.ReadFile("testdata/states-of-0.1.json")
	require.NoError(t, err)
	type state struct {
		Type, Name string
		Version    int64           `json:"schema_version"`
		Attributes json.RawMessage `json:"attributes"`
	}
	var stored []state
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(written), "of-0.1", b.Vhost)), &stored))
	declared := map[string]any{"declare": true}
	configs := map[string]map[string]any{
		"rabbitmq_retry_pipeline.orders": {
			"name": "orders", "delays": []any{"1s", "2s"}, "max_age": "24h", "retry_on": []any{"rejected", "expired"},
			"work_queues":            map[string]any{"orders.created": map[string]any{"declare": true, "max_attempts": 5}},
			"policy_definition_json": `{"delivery-limit":100}`,
		},
		"rabbitmq_queue.paid":            {"name": "orders.paid"},
		"rabbitmq_retry_attachment.paid": {"pipeline": "orders", "queue": "orders.paid"},
		"rabbitmq_retry_pipeline.counted": {
			"name": "counted", "engine": "consumer", "delays": []any{"1s"}, "work_queues": map[string]any{"counted.work": declared},
		},
		"rabbitmq_delayed_exchange.events": {"name": "events", "max_delay": "1h"},
		"rabbitmq_exchange.events":         {"name": "shop", "type": "topic", "arguments": map[string]any{"alternate-exchange": "amq.fanout"}},
		"rabbitmq_binding.paid":            {"source": "shop", "destination": "orders.paid", "routing_key": "paid.#"},
		"rabbitmq_policy.counted": {
			"name": "length", "pattern": "^shop", "apply_to": "queues", "definition": map[string]any{"max-length": 10},
		},
	}
	if !b.VersionAtLeast("4.0") { // consumers cannot count there
		stored = slices.DeleteFunc(stored, func(s state) bool { return s.Type == "rabbitmq_retry_pipeline" && s.Name == "counted" })
	}
	for _, s := range stored {
		config := configs[s.Type+"."+s.Name]
		config["vhost"] = b.Vhost
		c := &acctest.Core{Type: s.Type, Config: config, Times: acctest.Quick()}
		c.MustApply(t)
	}
	for _, s := range stored {
		c := &acctest.Core{Type: s.Type, Config: configs[s.Type+"."+s.Name], Times: acctest.Quick()}
		require.NoError(t, c.Upgrade(t.Context(), s.Version, s.Attributes), s.Name)
		c.RequireEmptyPlan(t)
	}
}
