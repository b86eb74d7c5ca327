package plain_test

import (
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
	require.ErrorContains(t, err, "does not exist")
}
