package plain_test

import (
	"context"
	"embed"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// states are what other providers have stored for the resources of [moving], on RabbitMQ 3.10 and 4.0.
//
//go:embed testdata/states/*.json
var states embed.FS

// stored is a resource in a state file.
type stored struct {
	Type, Name string
	Version    int64           `json:"schema_version"`
	Attributes json.RawMessage `json:"attributes"`
}

// movedVhost is the vhost in those states, and the beginning of all names outside it.
const movedVhost = "moved"

// moving has the configurations of those states, as far as the broker has the plugins.
func moving(t *testing.T, b *brokertest.Broker) map[string]map[string]any {
	t.Helper()
	all := movingIn(b.Vhost)
	if !b.HasPlugin(t, "rabbitmq_shovel") {
		maps.DeleteFunc(all, func(address string, _ map[string]any) bool {
			return strings.HasPrefix(address, "rabbitmq_shovel.") || strings.HasPrefix(address, "rabbitmq_federation_upstream.")
		})
	}
	return all
}

func movingIn(vhost string) map[string]map[string]any {
	block := func(attributes map[string]any) []any { return []any{attributes} }
	in := func(name string, more map[string]any) map[string]any {
		more["name"], more["vhost"] = name, vhost
		return more
	}
	binding := func(source, destination, kind string, more map[string]any) map[string]any {
		maps.Copy(more, map[string]any{"vhost": vhost, "source": source, "destination": destination, "destination_type": kind})
		return more
	}
	policy := func(priority int, definition map[string]any) map[string]any {
		return in("size", map[string]any{"policy": block(map[string]any{
			"pattern": "^nothing", "priority": priority, "apply_to": "queues", "definition": definition,
		})})
	}
	user := vhost + " app"
	return map[string]map[string]any{
		"rabbitmq_vhost.all":       {"name": vhost},
		"rabbitmq_vhost.described": {"name": vhost + " described", "description": "of the shop", "max_connections": 100},
		"rabbitmq_exchange.orders": in("orders", map[string]any{"settings": block(map[string]any{
			"type": "topic", "durable": true, "arguments": map[string]any{"alternate-exchange": "amq.fanout"},
		})}),
		"rabbitmq_exchange.bare": in("bare", map[string]any{"settings": block(map[string]any{"type": "fanout"})}),
		"rabbitmq_queue.bare":    in("bare", map[string]any{"settings": block(map[string]any{"durable": true})}),
		"rabbitmq_queue.arguments": in("arguments", map[string]any{"settings": block(map[string]any{
			"durable": true, "arguments": map[string]any{"x-queue-type": "quorum", "x-dead-letter-exchange": "orders"},
		})}),
		"rabbitmq_queue.json": in("json", map[string]any{"settings": block(map[string]any{
			"durable": true, "arguments_json": `{"x-max-length":10,"x-message-ttl":5000,"x-queue-type":"classic"}`,
		})}),
		"rabbitmq_binding.orders": binding("orders", "bare", "queue", map[string]any{"routing_key": "eu.#"}),
		"rabbitmq_binding.arguments": binding("amq.headers", "bare", "exchange", map[string]any{
			"arguments": map[string]any{"x-match": "all", "kind": "order"},
		}),
		"rabbitmq_binding.json": binding("amq.headers", "json", "queue", map[string]any{
			"arguments_json": `{"count":3,"x-match":"any"}`,
		}),
		"rabbitmq_policy.size":          policy(1, map[string]any{"max-length": "100", "overflow": "reject-publish"}),
		"rabbitmq_operator_policy.size": policy(0, map[string]any{"max-length": "1000"}),
		"rabbitmq_user.app":             {"name": user, "password": "secret", "tags": []any{"monitoring"}},
		"rabbitmq_user.bare":            {"name": vhost + " bare", "password": "secret"},
		"rabbitmq_permissions.app": {"user": user, "vhost": vhost, "permissions": block(map[string]any{
			"configure": "^$", "write": ".*", "read": "",
		})},
		"rabbitmq_topic_permissions.app": {"user": user, "vhost": vhost, "permissions": []any{
			map[string]any{"exchange": "amq.topic", "write": "^eu", "read": ".*"},
			map[string]any{"exchange": "orders", "write": ".*", "read": ".*"},
		}},
		"rabbitmq_shovel.queues": in("queues", map[string]any{"info": block(map[string]any{
			"source_uri": "amqp://a:secret@localhost", "source_queue": "from",
			"destination_uri": "amqp://b:secret@localhost", "destination_queue": "to",
		})}),
		"rabbitmq_shovel.exchanges": in("exchanges", map[string]any{"info": block(map[string]any{
			"source_uri": "amqp://", "source_exchange": "from", "source_exchange_key": "#", "source_prefetch_count": 10,
			"source_delete_after": "1000", "destination_uri": "amqp://", "destination_exchange": "to", "destination_exchange_key": "a",
			"destination_add_forward_headers": true, "destination_add_timestamp_header": true, "ack_mode": "on-publish", "reconnect_delay": 7,
			"destination_publish_properties": map[string]any{"content_type": "text/plain"},
		})}),
		"rabbitmq_shovel.old": in("old", map[string]any{"info": block(map[string]any{
			"source_uri": "amqp://", "source_queue": "from", "destination_uri": "amqp://",
			"prefetch_count": 7, "delete_after": "never", "add_forward_headers": true,
		})}),
		"rabbitmq_federation_upstream.bare": in("bare", map[string]any{"definition": block(map[string]any{"uri": "amqp://a:secret@localhost"})}),
		"rabbitmq_federation_upstream.all": in("all", map[string]any{"definition": block(map[string]any{
			"uri": "amqp://", "prefetch_count": 7, "reconnect_delay": 8, "ack_mode": "no-ack", "trust_user_id": true, "exchange": "a",
			"max_hops": 2, "expires": 1000, "message_ttl": 1000, "queue": "b",
		})}),
	}
}

// A state of another provider plans empty.
func TestAccEveryRelease_StatesOfOthersPlanEmpty(t *testing.T) {
	t.Parallel()
	files, err := states.ReadDir("testdata/states")
	require.NoError(t, err)
	b := brokertest.New(t)
	makeMoving(t, b)
	configurations := moving(t, b)
	for _, file := range files {
		text, err := states.ReadFile("testdata/states/" + file.Name())
		require.NoError(t, err)
		var all []stored
		require.NoError(t, json.Unmarshal(text, &all))
		for _, s := range all {
			config, has := configurations[s.Type+"."+s.Name]
			if !has {
				continue
			}
			t.Run(file.Name()+" "+s.Type+"."+s.Name, func(t *testing.T) {
				t.Parallel()
				attributes := []byte(strings.ReplaceAll(string(s.Attributes), movedVhost, b.Vhost))
				for way, takeOver := range map[string]func(*acctest.Core) error{
					"upgrade": func(c *acctest.Core) error { return c.Upgrade(t.Context(), s.Version, attributes) },
					"move": func(c *acctest.Core) error {
						return c.Move(t.Context(), "example.com/others/rabbitmq", s.Version, attributes)
					},
				} {
					c := core(s.Type, config)
					require.NoError(t, takeOver(c), way)
					plan, err := c.Plan(t.Context())
					require.NoError(t, err, way)
					if strings.Contains(file.Name(), "on-4") && s.Type+"."+s.Name == "rabbitmq_queue.bare" {
						// Their own plan would replace the queue.
						require.NoError(t, c.Apply(t.Context(), plan), way)
						plan, err = c.Plan(t.Context())
						require.NoError(t, err, way)
					}
					require.Equal(t, plan.Refreshed, plan.After, way)
				}
			})
		}
	}
}

// makeMoving makes the objects of those states.
func makeMoving(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	all := moving(t, b)
	for _, kind := range []string{
		"rabbitmq_vhost", "rabbitmq_exchange", "rabbitmq_queue", "rabbitmq_binding", "rabbitmq_policy", "rabbitmq_operator_policy",
		"rabbitmq_user", "rabbitmq_permissions", "rabbitmq_topic_permissions",
		"rabbitmq_shovel", "rabbitmq_federation_upstream",
	} {
		for name, config := range all {
			if !strings.HasPrefix(name, kind+".") {
				continue
			}
			c := core(kind, config)
			if name == "rabbitmq_vhost.all" {
				require.NoError(t, c.Import(t.Context(), b.Vhost))
			}
			c.MustApply(t)
			if kind == "rabbitmq_user" || name == "rabbitmq_vhost.described" {
				t.Cleanup(func() { require.NoError(t, c.Destroy(context.Background())) })
			}
		}
	}
}
