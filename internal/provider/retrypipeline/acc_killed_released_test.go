package retrypipeline_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// Terraform and the provider are killed when a declared work queue has lost all its bindings to a proof, the one that tells
// that it is declared among them. Whatever the configuration says of it next, and also if the state is lost, the next apply ends
// in an empty plan, and deletes the queue only if the configuration does not have it.
func TestAcc_ProofKilledBeforeTheQueueIsReleased(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	workQueue := func(attributes string) string { return `work_queues = { "declared" = { ` + attributes + ` } }` }
	for _, next := range []struct {
		name     string
		lines    []string
		imported bool
	}{
		{name: "released", lines: []string{workQueue("")}},
		{name: "absent"},
		{name: "declared", lines: []string{workQueue("declare = true")}},
		{name: "released, state lost", lines: []string{workQueue("")}, imported: true},
		{name: "absent, state lost", imported: true},
		{name: "declared, state lost", lines: []string{workQueue("declare = true")}, imported: true},
	} {
		interruptions := []string{"removal"}
		if everyWrite && !next.imported { // there is no definition to import during a destroy
			interruptions = append(interruptions, "destroy", "type")
		}
		for _, interruption := range interruptions {
			t.Run(interruption+", then "+next.name, func(t *testing.T) {
				t.Parallel()
				tf := newCLI(t, settings)
				hcl := func(lines ...string) string { return pipelineHCL(tf.Broker, append(lines, `delays = ["5s"]`)...) }
				tf.configure(t, hcl(workQueue("declare = true")))
				tf.apply(t)
				tf.configure(t, map[string]string{"removal": hcl(), "destroy": "", "type": hcl(`queue_type = "classic"`)}[interruption])
				tf.applyKilledUnbound(t)
				tf.configure(t, hcl(next.lines...))
				if next.imported {
					tf.importAnew(t)
				}
				tf.apply(t)
				tf.settled(t)
				status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "declared"), nil)
				if goes := next.name == "absent"; goes != (status == http.StatusNotFound) {
					t.Errorf("the queue: %d", status)
				}
			})
		}
	}
}

// applyKilledUnbound applies, and kills Terraform when nothing leads to the declared queue any more.
func (tf *cli) applyKilledUnbound(t *testing.T) {
	t.Helper()
	unbinds := func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/q/declared/")
	}
	if !tf.applyKilled(t, unbinds) {
		t.Fatal("the queue was never unbound")
	}
}

// importAnew loses the state, and imports the pipeline.
func (tf *cli) importAnew(t *testing.T) {
	t.Helper()
	if output, code := tf.run(t, "state", "rm", address); code != 0 {
		t.Fatal(output)
	}
	if output, code := tf.run(t, "import", "-input=false", address, importID(tf.Vhost, "orders")); code != 0 {
		t.Fatal(output)
	}
}
