package retrypipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Three states get a pipeline with the same work queue at the same time, which none of their plans can see. The applies
// wait for one another before they attach the queue. Whoever does not keep it is told who else has it, and leaves nothing.
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
		tf.configure(t, strings.ReplaceAll(pipelineHCL(first.Broker, `delays = ["5s"]`, `work_queues = { work = {} }`), `"orders"`, fmt.Sprintf("%q", name)))
		begin, attach := meet(&started), meet(&arrived)
		endpoint := first.Before(t, func(r *http.Request) {
			switch {
			case r.Method == http.MethodPut: // the first write; processes start at different times
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
	for _, b := range first.bindings(t) {
		if strings.Contains(b, ".return work ") {
			returning++
		}
	}
	if succeeded > 1 || returning != succeeded {
		t.Errorf("%d applies succeeded, and %d pipelines have the queue:\n%s", succeeded, returning, strings.Join(outputs, "\n"))
	}
}

// bindings are all of the vhost, as text.
func (tf *cli) bindings(t *testing.T) []string {
	t.Helper()
	var all []struct {
		Source, Destination string
		Key                 string `json:"routing_key"`
		Arguments           map[string]any
	}
	tf.Call(t, http.MethodGet, tf.Path("bindings"), nil, &all)
	var lines []string
	for _, b := range all {
		lines = append(lines, fmt.Sprintf("%s %s %s %v", b.Source, b.Destination, b.Key, b.Arguments))
	}
	return lines
}
