package plain_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// An object that is not there yet can be one of this configuration, which then must be referred to.
func TestAccEveryRelease_ReferToWhatIsNotThereYet(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.WithQueues(t, "q")
	user, _ := b.User(t, "", "", "", "")
	b.Call(t, http.MethodDelete, b.Path("permissions", user), nil, nil)
	const vhost = "vhost = rabbitmq_vhost.NAME.name"
	type config = map[string]any
	for _, c := range []struct {
		kind, want string
		config     config
	}{
		{"queue", vhost, config{"name": "a"}},
		{"exchange", vhost, config{"name": "a", "type": "fanout"}},
		{"binding", vhost, config{"source": "a", "destination": "b"}},
		{"policy", vhost, config{"name": "a", "pattern": "b", "definition": config{"max-length": 1}}},
		{"operator_policy", vhost, config{"name": "a", "pattern": "b", "definition": config{"max-length": 1}}},
		{"parameter", vhost, config{"component": "federation-upstream-set", "name": "a", "value": "[]"}},
		{"federation_upstream", vhost, config{"name": "a", "definition": []any{config{"uri": "amqp://a"}}}},
		{"permissions", vhost, config{"user": "nobody", "configure": "", "write": "", "read": ""}},
		{"topic_permissions", vhost, config{"user": "nobody", "permissions": []any{config{"exchange": "a", "write": "", "read": ""}}}},
		{"permissions", "user = rabbitmq_user.NAME.name", config{"vhost": b.Vhost, "user": "nobody", "configure": ""}},
		{"binding", "destination = rabbitmq_queue.NAME.name", config{"vhost": b.Vhost, "source": "amq.direct", "destination": "none"}},
		{"binding", "as in rabbitmq_exchange.NAME.name. If the destination is a queue, remove destination_type", config{"vhost": b.Vhost, "source": "none", "destination": "q"}},
		{"permissions", "Correct the regular expressions", config{"vhost": b.Vhost, "user": user, "configure": "("}},
	} {
		if c.config["vhost"] == nil {
			c.config["vhost"] = "nowhere"
		}
		_, err := core("rabbitmq_"+c.kind, c.config).PlanAndApply(t.Context())
		require.ErrorContains(t, err, c.want, c.kind)
	}
}

// The management API can delete neither binding, and the second one breaks its lists.
func TestBindingsThatTheAPICannotName(t *testing.T) {
	t.Parallel()
	for key, arguments := range map[string]map[string]any{".": nil, "..": nil, "a~b": {"x": "y"}} {
		found, err := core("rabbitmq_binding", map[string]any{
			"source": "a", "destination": "b", "routing_key": key, "arguments": arguments,
		}).Validate(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 1, key)
		require.Contains(t, found[0].Summary, "Routing key")
	}
}

// The apply names another resource of the configuration before the import, which would give the object two owners.
func TestAcc_SecondResourceOfAnObject(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "q")
	for kind, config := range map[string]map[string]any{
		"rabbitmq_binding":     {"vhost": b.Vhost, "source": "amq.direct", "destination": "q"},
		"rabbitmq_permissions": {"vhost": b.Vhost, "user": b.Username, "configure": "^a"},
		"rabbitmq_queue":       {"vhost": b.Vhost, "name": "second"},
	} {
		if kind == "rabbitmq_permissions" {
			config["user"], _ = b.User(t, "", "", "", "")
		} else {
			core(kind, config).MustApply(t)
		}
		_, err := core(kind, config).PlanAndApply(t.Context())
		require.ErrorContains(t, err, "If another resource of this configuration makes it, too, remove one of the two. Otherwise import it")
	}
}

// A release that does not know a value of apply_to is told so at the attribute.
func TestAccEveryRelease_ApplyToOfALaterRelease(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, kind := range []string{"rabbitmq_policy", "rabbitmq_operator_policy"} {
		_, err := core(kind, map[string]any{
			"vhost": b.Vhost, "name": "a", "pattern": "b", "apply_to": "quorum_queues", "definition": map[string]any{"max-length": 1},
		}).PlanAndApply(t.Context())
		if b.VersionAtLeast("3.12") {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "RabbitMQ knows quorum_queues from 3.12 on")
	}
}
