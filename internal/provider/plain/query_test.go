package plain_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// What `terraform query` writes for a broker plans empty after its import.
func TestAccEveryRelease_GeneratedConfigurationPlansEmpty(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	want := map[string]int{}
	for _, name := range []string{"plain", oddName} {
		for what, s := range subjects(t, b, name) {
			if strings.Contains(what, "permissions") && name != "plain" {
				continue // the names of users and exchanges are in other resources
			}
			c := s.core(s.config)
			c.MustApply(t)
			if everywhere(s.kind) {
				t.Cleanup(func() { require.NoError(t, c.Destroy(context.Background())) })
			}
			want[s.kind]++
		}
	}
	pipeline := core("rabbitmq_retry_pipeline", map[string]any{"name": "orders", "vhost": b.Vhost, "delays": []any{"5s"}})
	pipeline.MustApply(t)
	delayed := core("rabbitmq_delayed_exchange", map[string]any{"name": "events", "vhost": b.Vhost, "type": "topic", "max_delay": "1m"})
	delayed.MustApply(t)

	query := &acctest.Process{}
	for kind, least := range want {
		config := map[string]any{"vhost": b.Vhost}
		if everywhere(kind) {
			config = nil
		}
		listed, err := query.Query(t.Context(), kind, config)
		require.NoError(t, err, kind)
		if everywhere(kind) { // other tests have some
			listed = slices.DeleteFunc(listed, func(l acctest.Listed) bool { return !strings.HasPrefix(l.Name, b.Vhost) })
		}
		require.GreaterOrEqual(t, len(listed), least, kind)
		for _, l := range listed {
			require.NotRegexp(t, `^(orders|events|amq)\.`, l.Name, kind)
			l.Resource.RequireEmptyPlan(t)
		}
		if slices.Contains([]string{"rabbitmq_exchange", "rabbitmq_queue", "rabbitmq_policy", "rabbitmq_binding"}, kind) {
			require.Contains(t, listed[0].Warnings[0], "orders")
		}
	}
}

// everywhere reports whether resources of a kind are in no virtual host.
func everywhere(kind string) bool { return kind == "rabbitmq_vhost" || kind == "rabbitmq_user" }
