package broker

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// policyContents has a value for each policy key, with the other keys that the broker demands beside it.
var policyContents = map[string]map[string]any{
	"alternate-exchange":            {"alternate-exchange": "x"},
	"consumer-disconnected-timeout": {"consumer-disconnected-timeout": 60_000},
	"consumer-timeout":              {"consumer-timeout": 100_000},
	"dead-letter-exchange":          {"dead-letter-exchange": "x"},
	"dead-letter-routing-key":       {"dead-letter-routing-key": "k"},
	"dead-letter-strategy":          {"dead-letter-strategy": "at-most-once"},
	"delayed-retry-max":             {"delayed-retry-max": 1000, "delayed-retry-min": 100},
	"delayed-retry-min":             {"delayed-retry-min": 100},
	"delayed-retry-type":            {"delayed-retry-type": "all", "delayed-retry-min": 100},
	"delivery-limit":                {"delivery-limit": 5},
	"expires":                       {"expires": 100_000_000},
	"federation-upstream":           {"federation-upstream": "u"},
	"federation-upstream-pattern":   {"federation-upstream-pattern": "u"},
	"federation-upstream-set":       {"federation-upstream-set": "s"},
	"ha-mode":                       {"ha-mode": "all"},
	"ha-params":                     {"ha-params": 1, "ha-mode": "exactly"},
	"ha-promote-on-failure":         {"ha-promote-on-failure": "always", "ha-mode": "all"},
	"ha-promote-on-shutdown":        {"ha-promote-on-shutdown": "always", "ha-mode": "all"},
	"ha-sync-batch-size":            {"ha-sync-batch-size": 1, "ha-mode": "all", "ha-sync-mode": "automatic"},
	"ha-sync-mode":                  {"ha-sync-mode": "manual", "ha-mode": "all"},
	"initial-cluster-size":          {"initial-cluster-size": 1},
	"max-age":                       {"max-age": "1h"},
	"max-in-memory-bytes":           {"max-in-memory-bytes": 10},
	"max-in-memory-length":          {"max-in-memory-length": 10},
	"max-length":                    {"max-length": 100},
	"max-length-bytes":              {"max-length-bytes": 10_000_000},
	"max-priority":                  {"max-priority": 3},
	"message-ttl":                   {"message-ttl": 1000},
	"overflow":                      {"overflow": "drop-head"},
	"queue-leader-locator":          {"queue-leader-locator": "balanced"},
	"queue-master-locator":          {"queue-master-locator": "min-masters"},
	"queue-mode":                    {"queue-mode": "lazy"},
	"queue-version":                 {"queue-version": 2},
	"selector-field-max-bytes":      {"selector-field-max-bytes": 100},
	"selector-fields":               {"selector-fields": []string{"a"}},
	"single-active-consumer":        {"single-active-consumer": true},
	"stream-filter-size-bytes":      {"stream-filter-size-bytes": 32},
	"stream-max-segment-size-bytes": {"stream-max-segment-size-bytes": 1_000_000},
	"target-group-size":             {"target-group-size": 3},
}

// A policy and an operator policy apply to a queue if a lookup says so, with each key that the broker knows, for each type.
func TestPoliciesApplyAsOnTheBroker(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	put := func(kind, name, pattern string, priority int, definition map[string]any) bool {
		all := map[string]any{"max-length-bytes": 10_000_000} // which every type supports
		maps.Copy(all, definition)
		status, response := b.Request(t, http.MethodPut, b.Path(kind, name),
			map[string]any{"pattern": pattern, "apply-to": "queues", "priority": priority, "definition": all})
		if status == http.StatusBadRequest {
			require.Regexp(t, "not recognised|not permitted", string(response), name)
		}
		return status < http.StatusBadRequest
	}
	require.True(t, put("policies", "weak", ".", 0, nil) && put("operator-policies", "weak", ".", 0, nil))
	queues := 0
	// One kind at a time: with both, 4.0 cannot declare a queue.
	for _, kind := range []string{"policies", "operator-policies"} {
		for key, definition := range policyContents {
			if !put(kind, key, "^"+kind+`\..+\.`+key+"$", 1, definition) {
				continue
			}
			for _, queueType := range []string{topology.Classic, topology.Quorum, "stream"} {
				b.DeclareQueue(t, strings.Join([]string{kind, queueType, key}, "."), queueType, nil)
				queues++
			}
		}
	}

	vhost, err := newClient(t, b, b.Endpoint).List(t.Context(), b.Vhost)
	require.NoError(t, err)
	lookup := topology.NewLookup(vhost)
	brokertest.Eventually(t, func() error {
		var all []struct {
			Name, Policy string
			Operator     string `json:"operator_policy"`
		}
		b.Call(t, http.MethodGet, b.Path("queues"), nil, &all)
		if len(all) != queues {
			return fmt.Errorf("%d of %d queues", len(all), queues)
		}
		for _, queue := range all {
			said := lookup.Queue(queue.Name)
			if queue.Policy != said.Policies[0].Name || queue.Operator != said.Operator[0].Name {
				return fmt.Errorf("%+v has the policies %q and %q in a lookup", queue, said.Policies[0].Name, said.Operator[0].Name)
			}
		}
		return nil
	})
}
