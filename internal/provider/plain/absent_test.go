package plain_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// inVhosts are the subjects that belong to a vhost.
func inVhosts(t *testing.T) []string {
	t.Helper()
	all := subjects(t, brokertest.New(t), "plain")
	delete(all, "vhost")
	delete(all, "user")
	return slices.Sorted(maps.Keys(all))
}

// With its vhost, each object is gone. A destroy that does not refresh finds nothing to do.
func TestAccEveryRelease_VhostIsGone(t *testing.T) {
	t.Parallel()
	for _, what := range inVhosts(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			s := subjects(t, b, "plain")[what]
			c := core(s.kind, s.config)
			c.MustApply(t)
			b.Call(t, http.MethodDelete, b.Path("vhosts"), nil, nil)
			require.NoError(t, c.DestroyUnrefreshed(t.Context()))
		})
	}
}

// To a user without access to the vhost, each object looks deleted. It stays in the state until the user has access again.
func TestAccEveryRelease_VhostIsHidden(t *testing.T) {
	t.Parallel()
	for _, what := range inVhosts(t) {
		if what == "permissions" || what == "topic permissions" || what == "operator policy" {
			continue // only administrators write those, and they see each vhost
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			s := subjects(t, b, "plain")[what]
			user, password := b.User(t, "policymaker", ".*", ".*", ".*")
			c := core(s.kind, s.config)
			c.Settings = map[string]any{"username": user, "password": password}
			c.MustApply(t)
			b.Call(t, http.MethodDelete, b.Path("permissions", user), nil, nil)
			require.Error(t, c.DestroyUnrefreshed(t.Context()))
			b.Call(t, http.MethodPut, b.Path("permissions", user), map[string]string{"configure": ".*", "write": ".*", "read": ".*"}, nil)
			c.RequireEmptyPlan(t)
			require.NoError(t, c.Destroy(t.Context()))
		})
	}
}
