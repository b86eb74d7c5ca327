package apply

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// To a user who loses the vhost during a removal, everything looks deleted.
func TestRemovalWithoutAccessIsAnError(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	user, password := b.User(t, "policymaker", ".*", ".*", ".*")
	p := small(b)
	admin := newApplier(t, b, b.Endpoint)
	require.NoError(t, create(t, admin, p))
	all := list(t, admin, p.Vhost)
	live := pipeline.Owned(p, all.Topology)
	b.Call(t, http.MethodDelete, b.Path("permissions", user), nil, nil)
	a := applierAs(t, b.Endpoint, user, password)
	a.times = quickApplier(t, b, b.Endpoint).times
	err := a.Remove(t.Context(), Change{Vhost: p.Vhost, All: all, Live: live, CatchAll: "orders.failed"})
	if err == nil || b.VersionAtLeast("4.3.3") && !strings.Contains(err.Error(), "not accessible any more") {
		t.Errorf("got %v", err)
	}
	now := pipeline.Owned(p, list(t, admin, p.Vhost).Topology)
	if changes := topology.Diff(live, now); !changes.Empty() {
		t.Errorf("changed: %+v", changes)
	}
}

// A vhost that is gone takes everything along.
func TestRemovalFromAVhostThatIsGone(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := small(b)
	var once sync.Once
	a := quickApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/exchanges/") {
			once.Do(func() { b.Call(t, http.MethodDelete, "/api/vhosts/"+b.Vhost, nil, nil) })
		}
	}))
	require.NoError(t, create(t, a, p))
	all := list(t, a, p.Vhost)
	change := Change{Vhost: p.Vhost, All: all, Live: pipeline.Owned(p, all.Topology), CatchAll: "orders.failed"}
	if err := a.Remove(t.Context(), change); err != nil {
		t.Error(err)
	}
}
