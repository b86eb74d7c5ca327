package retrypipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Bindings from the pipeline's exchanges go with them, and by force those that lead to its objects. Each plan that deletes these
// names them. Without force_destroy, those that lead to its objects are in the way, and the plan says what to do.
func TestAcc_PlansNameTheBindingsOfOthersThatGo(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
	config := pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work" = { declare = true } }`, `force_destroy = true`)
	tf.configure(t, config)
	tf.apply(t)
	tf.DeclareQueue(t, "work listener", "quorum", nil)
	for path, key := range map[string]string{
		tf.Path("bindings", "e", "amq.topic", "q", "work"):           "to a declared queue",
		tf.Path("bindings", "e", "amq.topic", "q", "orders.failed"):  "to an own queue",
		tf.Path("bindings", "e", "amq.topic", "e", "orders.failed"):  "to an exchange",
		tf.Path("bindings", "e", "orders.dlx", "q", "work listener"): "from an exchange",
		tf.Path("bindings", "e", "amq.topic", "q", "work listener"):  "elsewhere",
		tf.Path("bindings", "e", "orders.failed", "e", "amq.fanout"): "between exchanges",
	} {
		tf.Call(t, http.MethodPost, path, map[string]any{"routing_key": key}, nil)
	}
	renamed := strings.Replace(config, `name = "orders"`, `name = "bills"`, 1)
	for name, c := range map[string]struct {
		config    string
		arguments []string
		want      bool
	}{
		"change":     {strings.Replace(config, "5s", "7s", 1), nil, false},
		"destroy":    {config, []string{"-destroy"}, true},
		"removal":    {"", nil, true},
		"other name": {renamed, nil, true},
		"other type": {strings.Replace(config, "delays", "queue_type = \"classic\"\n  delays", 1), nil, true},
	} {
		tf.configure(t, c.config)
		output := tf.plan(t, c.arguments...)
		_, warning, _ := strings.Cut(output, "Bindings of others are deleted")
		warning, _, _ = strings.Cut(warning, "Whoever needs them")
		for _, key := range []string{"to a declared queue", "to an own queue", "to an exchange", "from an exchange", "between exchanges"} {
			if strings.Contains(warning, key) != c.want {
				t.Errorf("%s: the plan names the binding %q: %t\n%s", name, key, !c.want, output)
			}
		}
		if strings.Contains(warning, "elsewhere") || strings.Contains(warning, "return:work]") {
			t.Errorf("%s: the plan names a binding that stays, or its own:\n%s", name, output)
		}
	}
	tf.configure(t, strings.Replace(config, "force_destroy = true", "", 1))
	tf.apply(t)
	output := tf.plan(t, "-destroy")
	_, inTheWay, _ := strings.Cut(output, "Exchanges or queues are bound by others")
	inTheWay, going, _ := strings.Cut(inTheWay, "Bindings of others are deleted")
	for _, want := range []string{"amq.topic -> work ['to a declared queue']", "amq.topic -> orders.failed ['to an own queue']", "['to an exchange']", "set declare = false"} {
		if !strings.Contains(inTheWay, want) || strings.Contains(going, want) {
			t.Errorf("what is in the way of a destroy: %q is missing, or said to be deleted:\n%s", want, output)
		}
	}
	if strings.Contains(inTheWay, "from an exchange") || !strings.Contains(going, "from an exchange") {
		t.Errorf("what is deleted is said to be in the way:\n%s", output)
	}
	tf.refuses(t, []string{"-destroy"}, "amq.topic -> work ['to a declared queue']", "set declare = false", "Or remove these bindings first")
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
	tf.refuses(t, nil, "Nothing was changed", "amq.topic -> work ['to a declared queue']")
}

// The binding is a resource of its own, which Terraform destroys first: the plan warns, and one run destroys both.
func TestAcc_BindingOfItsOwnGoesWithTheQueueInOneRun(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
	bindings := tf.Path("bindings", "e", "amq.topic", "q", "work")
	call := fmt.Sprintf("curl -fsS -u %s:%s -H content-type:application/json", tf.Username, tf.Password)
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work" = { declare = true } }`)+fmt.Sprintf(`
resource "terraform_data" "binding" {
  depends_on = [rabbitmq_retry_pipeline.orders]
  provisioner "local-exec" {
    command = "%[1]s -X POST %[2]s%[3]s -d '{\"routing_key\":\"of-others\"}'"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "%[1]s -X DELETE %[2]s%[3]s/of-others"
  }
}
`, call, tf.Endpoint, bindings))
	tf.apply(t)
	if output := tf.plan(t, "-destroy"); !strings.Contains(output, "amq.topic -> work [of-others]") {
		t.Errorf("the plan does not name the binding:\n%s", output)
	}
	if output, code := tf.run(t, "destroy", "-auto-approve", "-input=false"); code != 0 {
		t.Fatal(output)
	}
	if err := nothingLeft(t, tf.Broker); err != nil {
		t.Error(err)
	}
	if status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "work"), nil); status != http.StatusNotFound {
		t.Errorf("the declared queue: %d", status)
	}
}
