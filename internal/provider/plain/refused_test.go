package plain_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// If the first element of a list used with count goes, each binding takes over the key of the next one.
func TestAcc_BindingsThatPassKeysOn(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		b := brokertest.WithQueues(t, "q")
		apply := &acctest.Process{}
		var all []*acctest.Core
		var plans []acctest.Planned
		for _, key := range []string{"a", "b"} {
			c := core("rabbitmq_binding", map[string]any{"vhost": b.Vhost, "source": "amq.direct", "destination": "q", "routing_key": key})
			c.MustApply(t)
			all = append(all, c)
		}
		for i, key := range []string{"b", "c"} {
			all[i].Config["routing_key"] = key
			plan, err := all[i].Plan(t.Context())
			require.NoError(t, err)
			plans = append(plans, plan)
			all[i].Process = apply
		}
		for _, i := range order {
			require.NoError(t, all[i].Apply(t.Context(), plans[i]))
		}
		for _, c := range all {
			c.Process = nil
			c.RequireEmptyPlan(t)
		}
	}
}

// If a resource gets another address without a moved block, an apply creates and deletes one object.
func TestAcc_ObjectOfTwoAddressesStays(t *testing.T) {
	t.Parallel()
	for kind, config := range map[string]map[string]any{
		"rabbitmq_policy":  {"pattern": "^x$", "definition": map[string]any{"max-length": 1}},
		"rabbitmq_binding": {"source": "amq.direct"},
	} {
		names := "name"
		if kind == "rabbitmq_binding" {
			names = "destination"
		}
		of := func(b *brokertest.Broker, name string) *acctest.Core {
			at := maps.Clone(config)
			at["vhost"], at[names] = b.Vhost, name
			c := core(kind, at)
			c.MayReplace = true
			return c
		}
		for _, createdFirst := range []bool{true, false} {
			t.Run(fmt.Sprint(kind, createdFirst), func(t *testing.T) {
				t.Parallel()
				b := brokertest.WithQueues(t, "one", "two")
				goes, comes := of(b, "one"), of(b, "one")
				goes.MustApply(t)
				goes.Config[names] = "two"
				deletion, err := goes.Plan(t.Context())
				require.NoError(t, err)
				creation, err := comes.Plan(t.Context())
				require.NoError(t, err)
				goes.Process = &acctest.Process{}
				comes.Process = goes.Process
				if !createdFirst {
					require.NoError(t, goes.Apply(t.Context(), deletion))
					require.NoError(t, comes.Apply(t.Context(), creation))
					return
				}
				before := acctest.List(t, b)
				require.ErrorContains(t, comes.Apply(t.Context(), creation), "exists already")
				require.ErrorContains(t, goes.Apply(t.Context(), deletion), "add a moved block")
				require.NoError(t, before.RequireSame(acctest.List(t, b)))
			})
		}
	}
}

// If the old binding cannot be deleted, the state keeps it, and the error says how to import the new one.
func TestAcc_BindingThatChangesByHalf(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "q")
	c := core("rabbitmq_binding", map[string]any{"vhost": b.Vhost, "source": "amq.direct", "destination": "q", "routing_key": "old"})
	c.MustApply(t)
	c.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodDelete {
			http.Error(w, `{"error":"bad_request","reason":"not today"}`, http.StatusBadRequest)
			return
		}
		api.ServeHTTP(w, r)
	})
	c.Config["routing_key"] = "new"
	_, err := c.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "terraform import rabbitmq_binding.NAME '"+url.PathEscape(b.Vhost)+"/amq.direct/queue/q/new'")
	c.Endpoint = b.Endpoint
	c.MustApply(t)
	c.RequireEmptyPlan(t)
	require.Len(t, acctest.Names(t, b, "bindings"), 2) // one is from the default exchange
}

func TestAcc_PlanWarnsOfASharedBinding(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "q")
	c := core("rabbitmq_binding", map[string]any{"vhost": b.Vhost, "source": "amq.direct", "destination": "q", "routing_key": "own"})
	c.MustApply(t)
	bind(t, b, "amq.direct", "theirs")
	for key, warnings := range map[string]int{"theirs": 1, "new": 0} {
		c.Config["routing_key"] = key
		plan, err := c.Plan(t.Context())
		require.NoError(t, err)
		require.Len(t, plan.Warnings, warnings, key)
	}
}

func TestAcc_PlanWarnsOfAnExchangeThatDeletesItself(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "q", "other")
	b.Call(t, http.MethodPut, b.Path("exchanges", "e"), map[string]any{"type": "direct", "auto_delete": true}, nil)
	c := core("rabbitmq_binding", map[string]any{"vhost": b.Vhost, "source": "e", "destination": "q", "routing_key": "own"})
	c.MustApply(t)
	c.MayReplace = true
	c.Config["destination"] = "other"
	plan, err := c.Plan(t.Context())
	require.NoError(t, err)
	require.Len(t, plan.Warnings, 1)
}

// An exchange and a queue that somebody has bound are re-created in one apply.
func TestAcc_BothEndsAreRecreated(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	exchange := core("rabbitmq_exchange", map[string]any{"name": "e", "vhost": b.Vhost, "type": "direct"})
	queue := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost})
	exchange.MustApply(t)
	queue.MustApply(t)
	bind(t, b, "e", "one")
	acctest.AwaitCount(t, b, "q", 0)
	before := bindings(acctest.List(t, b))
	exchange.Config["type"] = "topic"
	queue.Config["arguments"] = map[string]any{"x-max-length": 10}
	ends, apply := []*acctest.Core{queue, exchange}, &acctest.Process{}
	var plans []acctest.Planned
	for _, c := range ends {
		plan, err := c.Plan(t.Context())
		require.NoError(t, err)
		plans = append(plans, plan)
		c.Process = apply
	}
	_, err := apply.Data(t.Context(), "rabbitmq_exchange", map[string]any{"name": "e", "vhost": b.Vhost}) // starts it
	require.NoError(t, err)
	var all errgroup.Group
	for i, c := range ends {
		all.Go(func() error { return c.Apply(t.Context(), plans[i]) })
	}
	require.NoError(t, all.Wait())
	require.NoError(t, before.RequireSame(bindings(acctest.List(t, b))))
	for _, c := range ends {
		c.Process = nil
		c.RequireEmptyPlan(t)
	}
}

// An update that cannot read the notes of an interrupted re-creation does not pass for one that restored its bindings.
func TestAcc_UnreadableNotesAreAnError(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost})
	c.MustApply(t)
	c.Config["force_destroy"] = true
	plan, err := c.Plan(t.Context())
	require.NoError(t, err)
	c.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/bindings/source") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		api.ServeHTTP(w, r)
	})
	require.ErrorContains(t, c.Apply(t.Context(), plan), "503")
}

func TestAcc_FailedTopicPermissionsKeepTheOthers(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	user, _ := b.User(t, "", "", "", "")
	permissions := func(at map[string]string) []any {
		var all []any
		for exchange, write := range at {
			all = append(all, map[string]any{"exchange": exchange, "write": write, "read": ".*"})
		}
		return all
	}
	c := core("rabbitmq_topic_permissions", map[string]any{
		"user": user, "vhost": b.Vhost, "permissions": permissions(map[string]string{"amq.topic": "^a", "amq.fanout": "^b", "amq.direct": "^c"}),
	})
	c.MustApply(t)
	before := c.Config["permissions"]
	c.Config["permissions"] = permissions(map[string]string{"amq.topic": "(", "amq.direct": "^c"})
	_, err := c.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "400")
	c.Config["permissions"] = before
	c.RequireEmptyPlan(t)
}

// A broker gives the creator of a virtual host all permissions. Others are not taken over.
func TestAcc_OtherPermissionsOfTerraformsUserStay(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	everything := map[string]any{"user": b.Username, "vhost": b.Vhost, "configure": ".*", "write": ".*", "read": ".*"}
	c := core("rabbitmq_permissions", everything)
	c.MustApply(t)
	other := core("rabbitmq_permissions", map[string]any{"user": b.Username, "vhost": b.Vhost, "configure": "^only$", "write": ".*", "read": ".*"})
	require.NoError(t, other.Import(t.Context(), b.Vhost+"/"+b.Username))
	other.MustApply(t)
	_, err := core("rabbitmq_permissions", everything).PlanAndApply(t.Context())
	require.ErrorContains(t, err, "exists already")
	other.RequireEmptyPlan(t)
}

// RabbitMQ writes some errors as lists of characters.
func TestAcc_ErrorsAreText(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_vhost", map[string]any{"name": b.Vhost + ".slow"})
	c.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method != http.MethodPut {
			api.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"error":[69,114,114,111,114],"reason":"failed to set up vhost"}`)) // as of 3.10
	})
	_, err := c.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "500 Internal Server Error: failed to set up vhost")
	c = core("rabbitmq_policy", map[string]any{"name": "p", "vhost": b.Vhost, "pattern": "(", "definition": map[string]any{"max-length": 1}})
	_, err = c.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "400 Bad Request: Validation failed")
}

func TestAcc_RefusedByValidation(t *testing.T) {
	t.Parallel()
	twice := map[string]any{"exchange": "a", "write": "", "read": ""}
	other := map[string]any{"exchange": "a", "write": "", "read": ".*"}
	for want, c := range map[string]*acctest.Core{
		`whose name is ""`:              core("rabbitmq_user", map[string]any{"name": ""}),
		`whose name is ".."`:            core("rabbitmq_queue", map[string]any{"name": ".."}),
		`whose vhost is "."`:            core("rabbitmq_shovel", map[string]any{"name": "a", "vhost": ".", "info": []any{map[string]any{}}}),
		"or have a comma":               core("rabbitmq_user", map[string]any{"name": "a", "tags": []any{"a,administrator"}}),
		"Write a value for each key":    core("rabbitmq_queue", map[string]any{"name": "a", "arguments": "x-max-length=10"}),
		"leave out jsonencode":          core("rabbitmq_policy", map[string]any{"name": "a", "pattern": "", "definition": `{"max-length":10}`}),
		"of 0 or more for x-max-length": core("rabbitmq_queue", map[string]any{"name": "a", "arguments": map[string]any{"x-max-length": -1}}),
		"of 0 or more for x-expires": core("rabbitmq_queue", map[string]any{
			"name": "a", "settings": []any{map[string]any{"arguments": map[string]any{"x-expires": "soon"}}},
		}),
		"of 0 or more for message-ttl": core("rabbitmq_policy", map[string]any{"name": "a", "pattern": "", "definition": map[string]any{"message-ttl": 1.5}}),
		"Two blocks name":              core("rabbitmq_topic_permissions", map[string]any{"user": "a", "permissions": []any{twice, other}}),
	} {
		found, err := c.Validate(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 1, want)
		require.Contains(t, found[0].Detail, want)
	}
	require.ErrorContains(t, core("rabbitmq_parameter", nil).Import(t.Context(), "v/shovel/a"), "rabbitmq_shovel")
	require.ErrorContains(t, core("rabbitmq_user", nil).Import(t.Context(), ".."), `whose name is ".."`)
}
