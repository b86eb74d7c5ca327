package apply

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestWriteWhoseAnswerIsLostCountsAsOursIfItTookEffect(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		return true, r.Method == http.MethodGet || r.Method == http.MethodDelete
	})
	p := small(b)
	require.NoError(t, create(t, c, p))
	all := list(t, c, p.Vhost)
	if changes := topology.Diff(pipeline.Expand(p), pipeline.Owned(p, all.Topology)); !changes.Empty() {
		t.Errorf("not everything was created: %+v", changes)
	}
}

func TestWriteThatNeverArrivedFailsAndIsRolledBack(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		ok := !strings.HasSuffix(r.URL.Path, "/orders.retry.1s") || r.Method == http.MethodGet
		return ok, ok
	})
	p := small(b)
	err := create(t, c, p)
	if err == nil || !strings.Contains(err.Error(), `create queue "orders.retry.1s"`) || !strings.Contains(err.Error(), "may still appear") {
		t.Fatalf("got %v", err)
	}
	all := list(t, c, p.Vhost)
	if left := pipeline.Owned(p, all.Topology); !left.Empty() {
		t.Errorf("left behind: %+v", left)
	}
}

// A proxy that did pass a write on may answer it with a page of its own.
func TestWriteThatAProxyAnswersIsLookedUp(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, status := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		c := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if r.Method != http.MethodPut {
				api.ServeHTTP(w, r)
				return
			}
			api.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "<html>", status)
		}))
		p := small(b)
		p.Name = fmt.Sprint("orders", status)
		if err := create(t, c, p); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// That a proxy finds nothing says nothing about the queue.
func TestNotFoundOfAProxyProvesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := small(b)
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
	c := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/orders.failed") {
			http.NotFound(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
	all := list(t, c, p.Vhost)
	live := pipeline.Owned(p, all.Topology)
	err := c.Remove(t.Context(), Change{Vhost: p.Vhost, All: all, Live: live, CatchAll: "orders.failed"})
	if err == nil || !strings.Contains(err.Error(), "not answered by RabbitMQ") {
		t.Errorf("got %v", err)
	}
	if changes := topology.Diff(live, pipeline.Owned(p, list(t, c, p.Vhost).Topology)); !changes.Empty() {
		t.Errorf("not everything was put back: %+v", changes)
	}
}
