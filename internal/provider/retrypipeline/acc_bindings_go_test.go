package retrypipeline_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// Bindings go with their exchanges and queues, whoever made them. Each plan that deletes these names them.
func TestAcc_PlansNameTheBindingsOfOthersThatGo(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t, terraformtest.Settings(t, terraformtest.BuildProvider(t)))
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
}
