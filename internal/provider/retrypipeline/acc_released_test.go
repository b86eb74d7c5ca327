package retrypipeline_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// A queue that the user has released keeps the argument by which the pipeline declared it. Whatever happens to the
// state afterwards, it is the user's.
func TestAcc_ReleasedQueueIsNeverDeleted(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
	for _, workQueues := range []string{`work_queues = { "work" = { declare = true } }`, `work_queues = { "work" = { declare = false } }`} {
		tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, workQueues))
		tf.apply(t)
	}
	if output, code := tf.run(t, "state", "rm", address); code != 0 {
		t.Fatal(output)
	}
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	if output, code := tf.run(t, "import", "-input=false", address, importID(tf.Vhost, "orders")); code != 0 {
		t.Fatal(output)
	}
	tf.apply(t)
	tf.settled(t)
	if status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "work"), nil); status != http.StatusOK {
		t.Errorf("the queue that was released is gone: %d", status)
	}
}

// Arguments of a queue cannot change. Whoever declares a released queue again with other ones does not get a new queue.
func TestAcc_ReleasedQueueIsNeverReplaced(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := func(workQueue string) string {
		return pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = `+workQueue+` }`)
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: config(`{ declare = true }`)},
		resource.TestStep{Config: config(`{}`)},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "", "work", persistent("kept")) },
			Config:      config(`{ declare = true, arguments_json = jsonencode({ "x-single-active-consumer" = true }) }`),
			ExpectError: regexp.MustCompile(`(?s)Work queues exist already.*"work" = \{\}`),
		},
		resource.TestStep{
			PreConfig: func() {
				if m, ok := b.Get(t, "work"); !ok || string(m.Body) != "kept" {
					t.Error("the queue was replaced")
				}
			},
			Config:           config(`{ declare = true }`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{Config: config(`{}`)},
	)
}
