package plain_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
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
	return map[string]subject{
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
				"password": "another", "tags": []any{"monitoring"},
				"permissions": map[string]any{v: map[string]any{"configure": "^$", "write": "^$", "read": "^a"}},
			},
		},
	}
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
	config[attribute] = s.others[attribute]
	return config
}

// taken is the configuration of somebody else, which the broker would accept in place of the object.
func (s subject) taken() map[string]any {
	config := maps.Clone(s.config)
	switch s.kind {
	case "rabbitmq_exchange", "rabbitmq_queue": // the broker refuses other attributes
	case "rabbitmq_binding": // other attributes make another binding
	default:
		maps.Copy(config, s.others)
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
		if s.kind == "rabbitmq_user" { // whose password is not on the broker
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
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
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
	maps.Copy(c.Config, s.others)
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
