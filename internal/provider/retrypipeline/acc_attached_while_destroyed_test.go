package retrypipeline_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Another state attaches a queue while one of the two proofs of a destroy is under way.
func TestAcc_PipelineThatGetsAQueueIsNotDestroyed(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for _, unbound := range []string{"p.inbox", "p.failed"} {
		t.Run("unbound "+unbound, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			b.DeclareQueue(t, "work", "quorum", nil)
			attachment := &acctest.Core{
				Type: "rabbitmq_retry_attachment", Times: acctest.Quick(),
				Config: map[string]any{"pipeline": "p", "vhost": b.Vhost, "queue": "work"},
			}
			attach := sync.OnceFunc(func() {
				if _, err := attachment.PlanAndApply(t.Context()); err != nil {
					t.Error(err)
				}
			})
			endpoint := b.Before(t, func(r *http.Request) {
				if r.Method != http.MethodDelete {
					return
				}
				if strings.Contains(r.URL.Path, "/q/"+unbound) {
					attach()
				} else if strings.Contains(r.URL.Path, "/q/p.failed") {
					t.Error("the failed queue is unbound although the pipeline has a queue")
				}
			})
			pipeline := &acctest.Core{
				Type: "rabbitmq_retry_pipeline", Times: acctest.Quick(), Endpoint: endpoint,
				Config: map[string]any{"name": "p", "vhost": b.Vhost, "delays": []string{"5s"}, "work_queues": map[string]any{}},
			}
			if _, err := pipeline.PlanAndApply(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := acctest.Names(t, b, "exchanges")
			if err := pipeline.Destroy(t.Context()); err == nil || !strings.Contains(err.Error(), "work") {
				t.Errorf("the destroy does not name the queue: %v", err)
			}
			if after := acctest.Names(t, b, "exchanges"); len(after) != len(before) {
				t.Errorf("the queue dead-letters to an exchange that is gone: %v instead of %v", after, before)
			}
		})
	}
}
