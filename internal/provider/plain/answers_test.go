package plain_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
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

// What only the broker can judge fails in the apply, at the attribute, with a remedy.
func TestAccEveryRelease_RefusalsNameTheAttribute(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, c := range []struct {
		kind              string
		config            map[string]any
		attribute, remedy string
	}{
		{"queue", map[string]any{"type": "quorun"}, "type", `Set type to "quorum"`},
		{"queue", map[string]any{"type": "stream", "arguments": map[string]any{"x-message-ttl": 1}}, "arguments", "Correct x-message-ttl in arguments"},
		{"queue", map[string]any{"arguments": map[string]any{"x-overflow": "no"}}, "arguments", "Correct x-overflow in arguments"},
		{"queue", map[string]any{"arguments": map[string]any{"x-dead-letter-exchange": 3}}, "arguments", "Correct x-dead-letter-exchange in"},
		{"exchange", map[string]any{"type": "topic", "arguments": map[string]any{"alternate-exchange": 3}}, "arguments", "Correct alternate-exchange in"},
		{"policy", map[string]any{"pattern": "*"}, "pattern", `To match all names, write ".*".`},
		{"policy", map[string]any{"definition": map[string]any{"no": 1}}, "definition", "Remove these keys from definition"},
		{"operator_policy", map[string]any{"definition": map[string]any{"no": 1, "x-max-length": 1}}, "definition", "write max-length in place of x-max-length."},
		{"policy", map[string]any{"definition": map[string]any{"overflow": "no"}}, "definition", "Correct this value in definition."},
	} {
		config := map[string]any{"name": "a", "vhost": b.Vhost}
		if strings.HasSuffix(c.kind, "policy") {
			config["pattern"], config["definition"] = "^none$", map[string]any{"max-length": 1}
		}
		maps.Copy(config, c.config)
		_, err := core("rabbitmq_"+c.kind, config).PlanAndApply(t.Context())
		require.ErrorContains(t, err, c.remedy)
		require.Equal(t, fmt.Sprintf("AttributeName(%q)", c.attribute), acctest.Attribute(err), c.remedy)
	}
}
