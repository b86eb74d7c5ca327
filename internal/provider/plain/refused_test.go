package plain_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// If the first element of a list used with count goes, each binding takes over the key of the next one.
func TestAcc_BindingsThatPassKeysOn(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		b := brokertest.New(t)
		b.DeclareQueue(t, "q", "quorum", nil)
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
		`whose name is ""`:           core("rabbitmq_user", map[string]any{"name": ""}),
		`whose name is ".."`:         core("rabbitmq_queue", map[string]any{"name": ".."}),
		`whose vhost is "."`:         core("rabbitmq_shovel", map[string]any{"name": "a", "vhost": ".", "info": []any{map[string]any{}}}),
		"must not contain a comma":   core("rabbitmq_user", map[string]any{"name": "a", "tags": []any{"a,administrator"}}),
		"Write a value for each key": core("rabbitmq_queue", map[string]any{"name": "a", "arguments": "x-max-length=10"}),
		"Two blocks name":            core("rabbitmq_topic_permissions", map[string]any{"user": "a", "permissions": []any{twice, other}}),
	} {
		found, err := c.Validate(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 1, want)
		require.Contains(t, found[0].Detail, want)
	}
	require.ErrorContains(t, core("rabbitmq_parameter", nil).Import(t.Context(), "v/shovel/a"), "rabbitmq_shovel")
	require.ErrorContains(t, core("rabbitmq_user", nil).Import(t.Context(), ".."), `whose name is ".."`)
}
