package plain_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

func TestAcc_ErrorsNameBothEndsOfABinding(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for kind, named := range map[string]string{"queue": `Binding "from -> to" in vhost`, "exchange": `Binding "from -> to (exchange)" in vhost`} {
		c := core("rabbitmq_binding", map[string]any{"vhost": b.Vhost, "source": "from", "destination": "to", "destination_type": kind})
		_, err := c.PlanAndApply(t.Context())
		require.ErrorContains(t, err, named)
	}
}

func TestAccEveryRelease_ObjectWithOtherPropertiesCanBeImported(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "a/b", "classic", nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "a/b"), map[string]any{"type": "direct", "durable": true}, nil)
	id := url.PathEscape(b.Vhost) + "/a%2Fb"
	for kind, properties := range map[string][]map[string]any{
		"rabbitmq_queue":    {{"type": "quorum"}, {"type": "classic", "arguments": map[string]any{"x-max-length": 10}}},
		"rabbitmq_exchange": {{"type": "topic"}, {"type": "direct", "arguments": map[string]any{"alternate-exchange": "amq.direct"}}},
	} {
		for _, config := range properties {
			config["name"], config["vhost"] = "a/b", b.Vhost
			c := core(kind, config)
			_, err := c.PlanAndApply(t.Context())
			require.ErrorContains(t, err, "terraform import "+kind+".NAME '"+id+"'")
			require.NoError(t, c.Import(t.Context(), id))
		}
	}
}
