package apply

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A queue whose deletion was not answered may still be deleted, with what it would receive by then.
func TestQueueThatMayStillBeDeletedGetsNoBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := small(b)
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		arrives := r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/queues/"+b.Vhost+"/orders.failed")
		return arrives, arrives
	})
	all := list(t, c, p.Vhost)
	live := pipeline.Owned(p, all.Topology)
	err := c.Remove(t.Context(), Change{Vhost: p.Vhost, All: all, Live: live, CatchAll: "orders.failed"})
	if err == nil || !strings.Contains(err.Error(), "stays unbound") {
		t.Fatalf("got %v", err)
	}
	after := list(t, c, p.Vhost)
	for _, binding := range after.Bindings {
		if binding.Source != "" && binding.Destination == "orders.failed" && !binding.ToExchange {
			t.Errorf("bound again: %s", binding)
		}
	}
	if !slices.ContainsFunc(after.Bindings, func(binding topology.Binding) bool {
		return binding.Source == "orders.dlx" && binding.Destination == "orders.inbox"
	}) {
		t.Error("the inbox is not bound again")
	}
}

// A node that dies in the middle of a deletion answers nothing, and may leave half a queue.
func TestDeletionIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"arrived": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			p := small(b)
			require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
			var deletions atomic.Int32
			c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
				if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/queues/"+b.Vhost+"/orders.retry.1s") || deletions.Add(1) > 2 {
					return true, true
				}
				return arrives, false
			})
			all := list(t, c, p.Vhost)
			live := pipeline.Owned(p, all.Topology)
			require.NoError(t, c.Remove(t.Context(), Change{Vhost: p.Vhost, All: all, Live: live, CatchAll: "orders.failed"}))
			after := list(t, c, p.Vhost)
			if left := pipeline.Owned(p, after.Topology); !left.Empty() || deletions.Load() != 3 {
				t.Errorf("after %d deletions: %+v", deletions.Load(), left)
			}
		})
	}
}

// A queue that applications declare may be a new one, with messages, after the first deletion.
func TestDeletionOfAnApplicationsQueueIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.Request(t, http.MethodPut, b.Path("queues", "work"), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}})
	var deletions atomic.Int32
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		if r.Method == http.MethodDelete {
			deletions.Add(1)
		}
		return true, r.Method != http.MethodDelete
	})
	e := c.execution(Change{Vhost: b.Vhost, SharedQueues: []string{"work"}})
	if err := e.removeQueue(t.Context(), "work", topology.Queue{Type: topology.Quorum}, false); err == nil || deletions.Load() != 1 {
		t.Errorf("%d deletions, %v", deletions.Load(), err)
	}
}

// The first deletion may still take effect, whatever the broker answers to the second.
func TestDeletionStaysInDoubtAfterARefusal(t *testing.T) {
	t.Parallel()
	var deletions atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte("[]"))
			return
		}
		w.WriteHeader([]int{http.StatusBadGateway, http.StatusForbidden}[min(deletions.Add(1), 2)-1])
	}))
	t.Cleanup(server.Close)
	c := applierOf(t, server.URL)
	e := c.execution(Change{Vhost: "/"})
	err := e.removeQueue(t.Context(), "orders.retry.5s", topology.Queue{Type: topology.Quorum}, false)
	if err == nil || !strings.Contains(err.Error(), "stays unbound") || !e.deletionUnknown["orders.retry.5s"] || deletions.Load() != 2 {
		t.Errorf("%d deletions, %v", deletions.Load(), err)
	}
}

// An exchange whose deletion was not answered comes back with its bindings.
func TestExchangeIsRecreatedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := small(b)
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		return true, r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/orders.retry")
	})
	change := noting(t, c, p, &p)
	all := change.All
	steps := change.replaceExchanges(map[string]topology.Exchange{"orders.retry": all.Exchanges["orders.retry"]})
	if err := c.execution(change).run(t.Context(), steps); err == nil {
		t.Error("no error")
	}
	after := list(t, c, p.Vhost)
	if changes := topology.Diff(pipeline.Owned(p, all.Topology), pipeline.Owned(p, after.Topology)); !changes.Empty() {
		t.Errorf("different now: %+v", changes)
	}
}

// To a user who may not see the vhost, everything looks as if it were deleted.
func TestWhatIsOutOfSightIsNotTakenForDeleted(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newApplier(t, b, b.Endpoint)
	if err := c.confirmVisible(t.Context(), b.Vhost); err != nil {
		t.Error(err)
	}
	if err := c.confirmVisible(t.Context(), b.Vhost+"-gone"); err != nil {
		t.Error(err)
	}
	other := brokertest.New(t)
	name, password := other.User(t, "management", ".*", ".*", ".*")
	blind := applierAs(t, b.Endpoint, name, password)
	if err := blind.confirmVisible(t.Context(), b.Vhost); err == nil {
		t.Error("no error")
	}
}
