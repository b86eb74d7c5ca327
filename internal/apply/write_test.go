package apply

import (
	"net/http"
	"strings"
	"testing"

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
	if err := create(t, c, p); err != nil {
		t.Fatal(err)
	}
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
