package plain_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func TestAcc_DataSources(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	of := subjects(t, b, "plain")
	for _, kind := range []string{"exchange", "queue"} {
		of[kind].core(of[kind].config).MustApply(t)
	}
	for kind, c := range map[string]struct{ config, want map[string]any }{
		"rabbitmq_vhost":        {map[string]any{"name": b.Vhost}, map[string]any{"tracing": false}},
		"rabbitmq_exchange":     {map[string]any{"name": "plain", "vhost": b.Vhost}, map[string]any{"type": "topic", "durable": true}},
		"rabbitmq_queue":        {map[string]any{"name": "plain", "vhost": b.Vhost}, map[string]any{"type": "quorum", "auto_delete": false}},
		"rabbitmq_user":         {map[string]any{"name": b.Username}, map[string]any{"tags": []any{"administrator"}}},
		"rabbitmq_default_user": {map[string]any{}, map[string]any{"name": b.Username, "tags": []any{"administrator"}}},
	} {
		shown, err := new(acctest.Process).Data(t.Context(), kind, c.config)
		require.NoError(t, err)
		for attribute, want := range c.want {
			require.Equal(t, want, shown[attribute], "%s.%s", kind, attribute)
		}
	}
	_, err := new(acctest.Process).Data(t.Context(), "rabbitmq_queue", map[string]any{"name": "none", "vhost": b.Vhost})
	require.ErrorContains(t, err, "is not on the broker.")
	for kind, config := range map[string]map[string]any{
		"rabbitmq_vhost":    {"name": b.Vhost + "s"},
		"rabbitmq_exchange": {"name": "plan", "vhost": b.Vhost},
		"rabbitmq_queue":    {"name": "Plains", "vhost": b.Vhost},
		"rabbitmq_user":     {"name": b.Username + "s"},
	} {
		_, err := new(acctest.Process).Data(t.Context(), kind, config)
		require.ErrorContains(t, err, "(did you mean", kind)
	}
}

// Brokers ignore misspelt arguments, and refuse misspelt keys of policies.
func TestAcc_MisspeltKeys(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	misspelt := map[string]any{"x-deadletter-exchange": "dlx", "x-owner": "me"}
	for kind, c := range map[string]struct {
		attribute string
		keys      map[string]any
		more      map[string]any
		meant     string
	}{
		"rabbitmq_queue":           {"arguments", misspelt, nil, "x-dead-letter-exchange"},
		"rabbitmq_exchange":        {"arguments", map[string]any{"alternate_exchange": "ae"}, map[string]any{"type": "fanout"}, "alternate-exchange"},
		"rabbitmq_policy":          {"definition", map[string]any{"dead-leter-exchange": "dlx"}, map[string]any{"pattern": "a"}, "dead-letter-exchange"},
		"rabbitmq_operator_policy": {"definition", map[string]any{"max-lengt": 1}, map[string]any{"pattern": "a"}, "max-length"},
	} {
		config := map[string]any{"name": "a", "vhost": b.Vhost, c.attribute: c.keys}
		maps.Copy(config, c.more)
		resource := core(kind, config)
		plan, err := resource.Plan(t.Context())
		require.NoError(t, err)
		require.Len(t, plan.Warnings, 1, kind)
		require.Regexp(t, "(?i)did you mean \""+c.meant+`"\?`, plan.Warnings[0], kind)
	}
	queue := core("rabbitmq_queue", map[string]any{"name": "a", "vhost": b.Vhost, "arguments": misspelt})
	queue.MustApply(t)
	plan, err := queue.Plan(t.Context())
	require.NoError(t, err)
	require.Empty(t, plan.Warnings, "what is there already is said once")
}
