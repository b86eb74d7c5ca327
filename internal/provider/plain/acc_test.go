package plain_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// subject is a resource with another value of each attribute that can change.
type subject struct {
	kind   string
	config map[string]any
	others map[string]any
}

// oddName has all characters that separate something somewhere.
const oddName = "a/b%2F@c#d~e f+g?h&ü€"

func subjects(t *testing.T, b *brokertest.Broker, name string) map[string]subject {
	t.Helper()
	v := b.Vhost
	b.Call(t, http.MethodPut, b.Path("exchanges", "from"), map[string]any{"type": "headers", "durable": true}, nil)
	b.DeclareQueue(t, "to", "quorum", nil)
	account := v + name // users have no vhost
	b.Call(t, http.MethodPut, "/api/users/"+url.PathEscape(account), map[string]any{"password": "secret", "tags": ""}, nil)
	t.Cleanup(func() { b.Call(t, http.MethodDelete, "/api/users/"+url.PathEscape(account), nil, nil) })
	policy := func(kind string) subject {
		return subject{
			kind: kind,
			config: map[string]any{
				"name": name, "vhost": v, "pattern": "^a", "definition": map[string]any{"max-length": 10, "expires": "1800000"}, "apply_to": "queues",
			},
			others: map[string]any{
				"pattern": "^b", "priority": 3, "definition": map[string]any{"max-length": 20},
			},
		}
	}
	vhost := subject{
		kind: "rabbitmq_vhost", config: map[string]any{"name": account, "default_queue_type": "classic"},
		others: map[string]any{
			"description": "another", "tags": []any{"a", "b"}, "tracing": true, "max_connections": 10, "max_queues": 0, "force_destroy": true,
		},
	}
	if b.VersionAtLeast("3.11") {
		vhost.others["default_queue_type"] = "quorum"
	}
	if name == oddName { // a broker can forget one of two changes of tracing at the same time
		delete(vhost.others, "tracing")
	}
	all := map[string]subject{
		"vhost": vhost,
		"exchange": {
			kind: "rabbitmq_exchange", config: map[string]any{"name": name, "vhost": v, "type": "topic"},
			others: map[string]any{
				"type": "fanout", "durable": false, "auto_delete": true, "internal": true, "arguments": map[string]any{"alternate-exchange": "amq.direct"},
			},
		},
		"queue": {
			kind: "rabbitmq_queue", config: map[string]any{
				"name": name, "vhost": v, "arguments": map[string]any{"x-max-length": "10", "x-dead-letter-exchange": "10"},
			},
			others: map[string]any{"force_destroy": true, "type": "classic", "arguments": map[string]any{"x-max-length": 20}},
		},
		"classic queue": {
			kind:   "rabbitmq_queue",
			config: map[string]any{"name": name + ".classic", "vhost": v, "type": "classic"},
			others: map[string]any{"durable": false, "auto_delete": true, "arguments": map[string]any{"x-max-priority": 3, "x-single-active-consumer": true}},
		},
		"binding": {
			kind: "rabbitmq_binding", config: map[string]any{"vhost": v, "source": "from", "destination": "to", "routing_key": name},
			others: bindingOthers(name),
		},
		"policy":          policy("rabbitmq_policy"),
		"operator policy": policy("rabbitmq_operator_policy"),
		"permissions": {
			kind:   "rabbitmq_permissions",
			config: map[string]any{"user": account, "vhost": v, "configure": "^$", "write": "^a", "read": ".*"},
			others: map[string]any{"configure": "^b", "write": "", "read": "^c"},
		},
		"topic permissions": {
			kind: "rabbitmq_topic_permissions",
			config: map[string]any{"user": account, "vhost": v, "permissions": []any{
				map[string]any{"exchange": "amq.topic", "write": "^a", "read": ".*"},
				map[string]any{"exchange": "from", "write": "^b", "read": ".*"},
			}},
			others: map[string]any{"permissions": []any{map[string]any{"exchange": "amq.topic", "write": "^c", "read": ".*"}}},
		},
		"user": {
			kind: "rabbitmq_user",
			config: map[string]any{
				"name": account + ".new", "password": "secret",
				"permissions": map[string]any{v: map[string]any{"configure": "^$", "write": "^$", "read": ".*"}},
			},
			others: map[string]any{
				"password": "another", "tags": []any{"monitoring"}, "max_connections": 10, "max_channels": 0,
				"permissions": map[string]any{v: map[string]any{"configure": "^$", "write": "^$", "read": "^a"}},
			},
		},
	}
	if b.HasPlugin(t, "rabbitmq_shovel") {
		maps.Copy(all, parameters(v, name))
	}
	return all
}

// parameters need the plugins rabbitmq_shovel and rabbitmq_federation.
func parameters(vhost, name string) map[string]subject {
	config := func(attribute string, value any) map[string]any {
		return map[string]any{"name": name, "vhost": vhost, attribute: []any{value}}
	}
	shovel := config("info", map[string]any{
		"source_uri": "amqp://a:secret@localhost", "destination_uri": "amqp://b:secret@localhost",
		"source_queue": name, "destination_queue": name,
	})
	upstream := config("definition", map[string]any{"uri": "amqp://a:secret@localhost"})
	set := config("value", map[string]any{"upstream": name})
	set["component"] = "federation-upstream-set"
	return map[string]subject{
		"parameter": {kind: "rabbitmq_parameter", config: set, others: map[string]any{
			"value": []any{map[string]any{"upstream": name}, map[string]any{"upstream": "another", "max-hops": 2}},
		}},
		"shovel": {kind: "rabbitmq_shovel", config: shovel, others: eachIn("info",
			map[string]any{"source_uri": nil, "source_uris": []any{"amqp://a:another@localhost", "amqp://"}},
			map[string]any{"destination_uri": "amqp://b:another@localhost"},
			map[string]any{
				"source_queue": nil, "source_exchange": name, "source_exchange_key": "a", "source_delete_after": "1000",
				"destination_queue": nil, "destination_exchange": name, "destination_exchange_key": "b", "ack_mode": "on-publish",
				"destination_publish_properties": map[string]any{"delivery_mode": "2", "content_type": "text/plain"},
			},
			map[string]any{
				"source_protocol": "amqp10", "source_queue": nil, "source_address": name, "destination_protocol": "amqp10",
				"destination_queue": nil, "destination_address": name, "destination_properties": map[string]any{"subject": "a"},
				"destination_application_properties": map[string]any{"a": "b"}, "destination_message_annotations": map[string]any{"x-a": "b"},
			},
		)},
		"federation upstream": {kind: "rabbitmq_federation_upstream", config: upstream, others: eachIn("definition",
			map[string]any{"uri": "amqp://a:another@localhost"},
			map[string]any{
				"ack_mode": "no-ack", "prefetch_count": 7, "reconnect_delay": 8, "trust_user_id": true, "exchange": "a",
				"max_hops": 2, "expires": 1000, "message_ttl": 1000, "queue": "b",
			},
		)},
	}
}

// eachIn has changes of attributes in a block.
func eachIn(block string, changes ...map[string]any) map[string]any {
	others := map[string]any{}
	for _, change := range changes {
		others[fmt.Sprintf("%s %v", block, change)] = change
	}
	return others
}

// bindingOthers has no arguments if the name has a ~, because the management API would fail on the binding.
func bindingOthers(name string) map[string]any {
	others := map[string]any{"routing_key": "another"}
	if !strings.Contains(name, "~") {
		others["arguments"] = map[string]any{"x-match": "all", "a": 1, "b": "2"}
	}
	return others
}

func TestAccEveryRelease_Attributes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", oddName} {
		b := brokertest.New(t)
		for what, s := range subjects(t, b, name) {
			t.Run(strings.ReplaceAll(name, "/", "_")+" "+what, func(t *testing.T) {
				t.Parallel()
				if s.others["tracing"] != nil && b.VersionAtLeast("4.1") { // older ones can still be deleting the old one, and fail
					// A new vhost has the tracing of a deleted one.
					vhost := fmt.Sprintf("/api/vhosts/%s", s.config["name"])
					b.Call(t, http.MethodPut, vhost, map[string]any{"tracing": true}, nil)
					b.Call(t, http.MethodDelete, vhost, nil, nil)
				}
				check(t, s)
			})
		}
	}
}

// RabbitMQ 3.10 has default queue types, but cannot change one.
func TestAccEveryRelease_DefaultQueueTypeOfAVhost(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_vhost", map[string]any{"name": b.Vhost + ".new", "default_queue_type": "quorum"})
	c.MustApply(t)
	c.RequireEmptyPlan(t)
	c.Config["default_queue_type"] = "classic"
	_, err := c.PlanAndApply(t.Context())
	if b.VersionAtLeast("3.11") {
		require.NoError(t, err)
		c.RequireEmptyPlan(t)
	} else {
		require.ErrorContains(t, err, `kept the default queue type "quorum"`)
	}
	require.NoError(t, c.Destroy(t.Context()))
}

func (s subject) core(config map[string]any) *acctest.Core {
	return &acctest.Core{Type: s.kind, Config: config, Times: acctest.Quick()}
}

// with is the configuration with another value of an attribute.
func (s subject) with(attribute string) map[string]any {
	config := maps.Clone(s.config)
	s.change(config, attribute)
	return config
}

// change sets an attribute to its other value.
func (s subject) change(config map[string]any, attribute string) {
	name, _, inBlock := strings.Cut(attribute, " ")
	if !inBlock {
		config[name] = s.others[attribute]
		return
	}
	block, _ := config[name].([]any)
	content, _ := block[0].(map[string]any)
	changes, _ := s.others[attribute].(map[string]any)
	content = maps.Clone(content)
	maps.Copy(content, changes)
	config[name] = []any{content}
}

// secret reports whether an import leaves out a secret.
func (s subject) secret() bool {
	return slices.Contains([]string{"rabbitmq_user", "rabbitmq_shovel", "rabbitmq_federation_upstream"}, s.kind)
}

// taken is the configuration of somebody else, which the broker would accept in place of the object.
func (s subject) taken() map[string]any {
	config := maps.Clone(s.config)
	switch s.kind {
	case "rabbitmq_exchange", "rabbitmq_queue": // the broker refuses other attributes
	case "rabbitmq_binding": // other attributes make another binding
	default:
		for attribute := range s.others {
			s.change(config, attribute)
		}
	}
	return config
}

func check(t *testing.T, s subject) {
	t.Helper()
	c := s.core(s.config)
	c.MustApply(t)
	plan, err := c.Plan(t.Context())
	require.NoError(t, err)
	require.True(t, plan.Empty())
	id, _ := plan.Refreshed["id"].(string)
	_, err = s.core(s.taken()).PlanAndApply(t.Context())
	require.ErrorContains(t, err, "exists already")
	c.RequireEmptyPlan(t)
	for attribute := range s.others {
		byHand := s.core(s.config)
		require.NoError(t, byHand.Import(t.Context(), id))
		if s.secret() {
			byHand.MustApply(t)
		}
		byHand.RequireEmptyPlan(t)
		byHand.Config = s.with(attribute)
		byHand.MustApply(t)
		if attribute != "force_destroy" {
			plan, err := c.Plan(t.Context())
			if err != nil || plan.Empty() {
				t.Errorf("%v: the plan does not show another %s", err, attribute)
			}
			c.MustApply(t)
			c.RequireEmptyPlan(t)
		}
		c.Config = s.with(attribute)
		c.MustApply(t)
		c.RequireEmptyPlan(t)
		c.Config = s.config
		c.MustApply(t)
		c.RequireEmptyPlan(t)
	}
	require.NoError(t, c.Destroy(t.Context()))
	if s.kind == "rabbitmq_vhost" { // a broker before 4.1 can fail while it still deletes the old one
		return
	}
	c.MustApply(t)
	require.NoError(t, c.Destroy(t.Context()))
}

// importID is the id in an error that says that an object exists already.
var importID = regexp.MustCompile(`terraform import \S+ '(.*)'`)

// A creation, change or destroy that is killed at any write can be finished.
func TestAcc_KilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"vhost", "exchange", "queue", "binding", "policy", "operator policy", "user", "permissions", "topic permissions",
		"federation upstream",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind == "federation upstream" {
				brokertest.New(t).Needs(t, brokertest.Plugin("rabbitmq_shovel"), brokertest.Plugin("rabbitmq_federation"))
			}
			for what, phase := range map[string]func(*testing.T, *brokertest.Broker, subject, acctest.Kill) int{
				"create": killedCreation, "change": killedChange, "destroy": killedDestroy,
			} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					acctest.AtEachWrite(t, func(t *testing.T, write int) int {
						t.Helper()
						b := brokertest.New(t)
						return phase(t, b, subjects(t, b, "plain")[kind], acctest.At(write))
					})
				})
			}
		})
	}
}

func killedCreation(t *testing.T, b *brokertest.Broker, s subject, kill acctest.Kill) int {
	t.Helper()
	c := s.core(s.config)
	writes := c.Killed(t, b, kill, acctest.Change(t))
	finish(t, c)
	require.NoError(t, c.Destroy(t.Context()))
	return writes
}

func killedChange(t *testing.T, b *brokertest.Broker, s subject, kill acctest.Kill) int {
	t.Helper()
	c := s.core(s.config)
	c.MustApply(t)
	c.Config = maps.Clone(s.config)
	for attribute := range s.others {
		s.change(c.Config, attribute)
	}
	writes := c.Killed(t, b, kill, acctest.Change(t))
	finish(t, c)
	require.NoError(t, c.Destroy(t.Context()))
	return writes
}

// finish applies what was killed. If the object is already there but not in the state, it is imported.
func finish(t *testing.T, c *acctest.Core) {
	t.Helper()
	if _, err := c.PlanAndApply(t.Context()); err != nil {
		require.ErrorContains(t, err, "exists already")
		require.NoError(t, c.Import(t.Context(), importID.FindStringSubmatch(err.Error())[1]))
	}
	c.Settled(t)
}

func killedDestroy(t *testing.T, b *brokertest.Broker, s subject, kill acctest.Kill) int {
	t.Helper()
	c := s.core(s.config)
	c.MustApply(t)
	writes := c.Killed(t, b, kill, acctest.Destruction(t))
	require.NoError(t, c.Destroy(t.Context()))
	c.MustApply(t)
	require.NoError(t, c.Destroy(t.Context()))
	return writes
}
