package retrypipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Pipelines that are destroyed at the same time share their listings of the vhost, and none lists it to see what it did.
func TestAcc_DestroysShareListings(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	var listings atomic.Int32
	endpoint := b.Before(t, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/api/queues/"+b.Vhost) {
			listings.Add(1)
		}
	})
	var pipelines []*acctest.Core
	for i := range 20 {
		queue := fmt.Sprintf("work%d", i)
		b.DeclareQueue(t, queue, "classic", nil)
		core := &acctest.Core{
			Type: "rabbitmq_retry_pipeline", Times: acctest.Quick(), Endpoint: endpoint,
			Config: map[string]any{
				"name": fmt.Sprintf("p%d", i), "vhost": b.Vhost, "delays": []string{"5s"}, "queue_type": "classic", "work_queues": map[string]any{queue: map[string]any{"type": "classic"}},
			},
		}
		if _, err := core.PlanAndApply(t.Context()); err != nil {
			t.Fatal(err)
		}
		pipelines = append(pipelines, core)
	}
	listings.Store(-1) // that of the plan
	require.NoError(t, acctest.DestroyTogether(t.Context(), pipelines...))
	if n := listings.Load(); n > 3 {
		t.Errorf("%d destroys at the same time listed the vhost %d times", len(pipelines), n)
	}
	var left []struct{ Name string }
	if b.Call(t, http.MethodGet, b.Path("queues"), nil, &left); len(left) > len(pipelines) {
		t.Errorf("more than the work queues is left: %v", left)
	}
}
