package plain_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
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
		{"operator_policy", map[string]any{"definition": map[string]any{"no": 1, "x-max-length": 1}}, "definition", "Keys of policies have no x-: write max-length."},
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

// A plan refuses only numbers that the broker refuses, in queues of each type and in policies.
func TestAccEveryRelease_NumbersThatAPlanRefuses(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	refused := func(kind string, body map[string]any) bool {
		status, _ := b.Request(t, http.MethodPut, b.Path(kind, "a"), body)
		return status == http.StatusBadRequest
	}
	for _, value := range []any{-1, 1.5, "soon", true} {
		for _, key := range topology.CountKeys {
			for _, kind := range []string{"classic", "quorum", "stream"} {
				require.True(t, refused("queues", map[string]any{
					"durable": true, "arguments": map[string]any{"x-queue-type": kind, "x-" + key: value},
				}), "%s %s %v", kind, key, value)
			}
			for _, policies := range []string{"policies", "operator-policies"} {
				require.True(t, refused(policies, map[string]any{
					"pattern": "^none$", "apply-to": "queues", "definition": map[string]any{key: value},
				}), "%s %s %v", policies, key, value)
			}
		}
	}
}

func TestAccEveryRelease_PlanRefusesAnUnknownExchangeType(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_exchange", map[string]any{"name": "e", "vhost": b.Vhost, "type": "topik"})
	_, err := c.Plan(t.Context())
	require.ErrorContains(t, err, "Set type to one that it has: direct, fanout, headers, topic")
	require.Equal(t, `AttributeName("type")`, acctest.Attribute(err))
	for _, kind := range []string{"direct", "fanout", "headers", "topic"} {
		c.Config["type"] = kind
		c.MustApply(t)
	}
	c.Config["arguments"] = map[string]any{"alternate-exchange": "amq.direct"}
	planned, err := c.Plan(t.Context())
	require.NoError(t, err)
	delete(c.Config, "arguments")
	c.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.URL.Path != "/api/overview" {
			api.ServeHTTP(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"rabbitmq_version":"4.3.6","exchange_types":[{"name":"direct"}]}`)) // the plugin is gone
	})
	c.RequireEmptyPlan(t)

	// Neither the old nor the new exchange could be created.
	require.Error(t, c.Apply(t.Context(), planned))
	c.Config["arguments"] = map[string]any{"alternate-exchange": "amq.direct"}
	_, err = c.Plan(t.Context())
	require.ErrorContains(t, err, "Unknown exchange type")
	b.Call(t, http.MethodGet, b.Path("exchanges", "e"), nil, nil)
}

// A creation whose answer is lost is known to be ours, if the object was absent before. One that fails halfway leaves nothing.
func TestAcc_UnfinishedCreations(t *testing.T) {
	t.Parallel()
	faults := map[string]func(w http.ResponseWriter, r *http.Request, api http.Handler){
		"lost": func(_ http.ResponseWriter, r *http.Request, api http.Handler) {
			api.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		},
		"refused": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, `{"error":"bad_request","reason":"not today"}`, http.StatusBadRequest)
		},
		"not sent": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	}
	for what := range subjects(t, brokertest.New(t), "plain") {
		for fault, answer := range faults {
			t.Run(what+", "+fault, func(t *testing.T) {
				t.Parallel()
				for at := int32(1); ; at++ {
					b := brokertest.New(t)
					s := subjects(t, b, "plain")[what]
					c := core(s.kind, s.config)
					var writes atomic.Int32
					c.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
						if r.Method != http.MethodGet && r.Method != http.MethodDelete && writes.Add(1) == at {
							answer(w, r, api)
							return
						}
						api.ServeHTTP(w, r)
					})
					_, err := c.PlanAndApply(t.Context())
					missed := writes.Load() < at
					c.Endpoint = ""
					switch {
					case missed || fault == "lost" && what != "user" && what != "topic permissions": // which need several writes
						require.NoError(t, err)
						c.RequireEmptyPlan(t)
					case fault != "lost":
						require.Error(t, err)
						c.MustApply(t)
					default:
						finish(t, c)
					}
					require.NoError(t, c.Destroy(t.Context()))
					if missed {
						return
					}
				}
			})
		}
	}
}

// What was on the broker before is not adopted, even if the answer to the creation is lost.
func TestAcc_LostAnswerAdoptsNothing(t *testing.T) {
	t.Parallel()
	for what := range subjects(t, brokertest.New(t), "plain") {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			s := subjects(t, b, "plain")[what]
			core(s.kind, s.config).MustApply(t)
			c := core(s.kind, s.config)
			c.Endpoint = b.Through(t, func(r *http.Request) (forward, answer bool) { return true, r.Method == http.MethodGet })
			_, err := c.PlanAndApply(t.Context())
			require.ErrorContains(t, err, "terraform import")
			c.Endpoint = ""
			_, err = c.PlanAndApply(t.Context())
			require.ErrorContains(t, err, "exists already")
		})
	}
}
