package retrypipeline_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Terraform plans an apply before it plans a destroy, and nothing tells that from any other plan. So the error that
// ends it says how to go on.
func TestAcc_ErrorOfAPlanNamesTheDestroyThatPasses(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
	tf.DeclareQueue(t, "work", "quorum", nil)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work" = {} }`))
	tf.apply(t)
	stronger := map[string]any{"pattern": "^work$", "apply-to": "queues", "priority": 5000, "definition": map[string]any{"max-length": 5}}
	tf.Call(t, http.MethodPut, tf.Path("policies", "stronger"), stronger, nil)

	const hint = "terraform destroy -refresh=false"
	output, code := tf.run(t, "destroy", "-input=false", "-auto-approve")
	if code == 0 || !strings.Contains(output, "policy_priority = 5001") || !strings.Contains(output, hint) {
		t.Fatalf("destroy: %d\n%s", code, output)
	}
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["7s"]`, `work_queues = { "work" = {} }`))
	if output, code := tf.run(t, "plan", "-input=false"); code == 0 || strings.Contains(output, hint) {
		t.Fatalf("the plan of a change speaks of a destroy: %d\n%s", code, output)
	}
	if output, code := tf.run(t, "destroy", "-input=false", "-auto-approve", "-refresh=false"); code != 0 {
		t.Fatalf("destroy -refresh=false: %d\n%s", code, output)
	}
	if err := nothingLeft(t, tf.Broker); err != nil && !strings.HasSuffix(err.Error(), ": policies stronger") {
		t.Error(err)
	}
}
