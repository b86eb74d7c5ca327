package retrypipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Three states create a pipeline with the same work queue at the same time, which their plans cannot see. Each apply waits
// for the others before it attaches the queue. Each pipeline that does not get the queue reports the queue's owner, and
// leaves no objects.
func TestAcc_ThreeStatesAttachAQueueAtOnce(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	first := newCLI(t)
	first.DeclareQueue(t, "work", "quorum", nil)
	var started, arrived, done sync.WaitGroup
	outputs, codes, applies := make([]string, 3), make([]int, 3), make([]*cli, 3)
	started.Add(len(codes))
	arrived.Add(len(codes))
	meet := func(all *sync.WaitGroup) func() { return sync.OnceFunc(func() { all.Done(); all.Wait() }) }
	for i, name := range []string{"orders", "bills", "mails"} {
		tf := newCLI(t)
		tf.configure(t, pipelineNamed(first.Broker, name, `work_queues = { work = {} }`))
		begin, attach := meet(&started), meet(&arrived)
		endpoint := first.Before(t, func(r *http.Request) {
			switch {
			case r.Method == http.MethodPut: // the first write, since processes start at different times
				begin()
			case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/e/"+name+".return/q/work"):
				attach()
			}
		})
		tf.Env = append(tf.Env, "RABBITMQ_ENDPOINT="+endpoint)
		tf.plan(t)
		applies[i] = tf
	}
	for i, tf := range applies {
		done.Go(func() { outputs[i], codes[i] = tf.run(t, "apply", "-input=false", "saved") })
	}
	done.Wait()
	succeeded := 0
	for i, code := range codes {
		if code == 0 {
			succeeded++
		} else if !strings.Contains(outputs[i], `queue "work" was attached to the pipeline`) {
			t.Errorf("the error does not say who else has the queue:\n%s", outputs[i])
		}
	}
	returning := 0
	var bindings []struct{ Source, Destination string }
	first.Call(t, http.MethodGet, first.Path("bindings"), nil, &bindings)
	for _, b := range bindings {
		if strings.HasSuffix(b.Source, ".return") && b.Destination == "work" {
			returning++
		}
	}
	if succeeded > 1 || returning != succeeded {
		t.Errorf("%d applies succeeded, and %d pipelines have the queue:\n%s", succeeded, returning, strings.Join(outputs, "\n"))
	}
}

// Another state attaches a queue during one of the two proofs of a destroy.
func TestAcc_PipelineThatGetsAQueueIsNotDestroyed(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for _, unbound := range []string{"p.inbox", "p.failed"} {
		t.Run("unbound "+unbound, func(t *testing.T) {
			t.Parallel()
			b := brokertest.WithQueues(t, "work")
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
			owner := &acctest.Core{
				Type: "rabbitmq_retry_pipeline", Times: acctest.Quick(), Endpoint: endpoint,
				Config: map[string]any{"name": "p", "vhost": b.Vhost, "delays": []string{"5s"}, "work_queues": map[string]any{}},
			}
			owner.MustApply(t)
			before := acctest.Names(t, b, "exchanges")
			if err := owner.Destroy(t.Context()); err == nil || !strings.Contains(err.Error(), "work") {
				t.Errorf("the destroy does not name the queue: %v", err)
			}
			if after := acctest.Names(t, b, "exchanges"); len(after) != len(before) {
				t.Errorf("the queue dead-letters to an exchange that is gone: %v instead of %v", after, before)
			}
		})
	}
}

// Pipelines that are destroyed at the same time share their listings of the vhost. No destroy lists the vhost to check its
// own result.
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
		core.MustApply(t)
		pipelines = append(pipelines, core)
	}
	listings.Store(-1) // the plan's listing
	require.NoError(t, acctest.DestroyTogether(t.Context(), pipelines...))
	if n := listings.Load(); n > 3 {
		t.Errorf("%d destroys at the same time listed the vhost %d times", len(pipelines), n)
	}
	var left []struct{ Name string }
	if b.Call(t, http.MethodGet, b.Path("queues"), nil, &left); len(left) > len(pipelines) {
		t.Errorf("more than the work queues is left: %v", left)
	}
}
