package retrypipeline_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// Terraform and the provider are killed when a declared work queue has lost all its bindings to a proof, the one that tells
// that it is declared among them. Whatever the configuration says of it next, and also if the state is lost, the bindings of
// applications come back if the queue stays.
func TestAcc_ProofKilledBeforeTheQueueIsReleased(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	workQueue := func(attributes string) string { return `work_queues = { "declared" = { ` + attributes + ` } }` }
	for _, next := range []struct {
		name     string
		lines    []string
		imported bool
		// unless the error of the next apply says this, and there is another one after it.
		refused string
	}{
		{name: "released", lines: []string{workQueue("")}},
		{name: "absent"},
		{name: "declared", lines: []string{workQueue("declare = true")}},
		{name: "declared otherwise", lines: []string{workQueue(`declare = true, arguments_json = jsonencode({ "x-single-active-consumer" = true })`)}, refused: "re-created"},
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
				tf.bindArguments(t)
				tf.configure(t, map[string]string{"removal": hcl(), "destroy": "", "type": hcl(`queue_type = "classic"`)}[interruption])
				tf.applyKilledUnbound(t)
				if left := tf.boundArguments(t); left != 0 {
					t.Fatalf("%d bindings of the application are still there", left)
				}
				tf.configure(t, hcl(next.lines...))
				if next.imported {
					tf.importAnew(t)
				}
				if next.refused != "" {
					tf.refuses(t, nil, next.refused)
					tf.configure(t, hcl(workQueue("")))
				}
				tf.apply(t)
				tf.settled(t)
				status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "declared"), nil)
				if goes := next.name == "absent"; goes != (status == http.StatusNotFound) {
					t.Fatalf("the queue: %d", status)
				}
				if bound := tf.boundArguments(t); status == http.StatusOK && bound != 2 {
					t.Errorf("%d of 2 bindings of the application are there", bound)
				}
			})
		}
	}
}

// bindArguments binds the declared queue as an application would, with arguments.
func (tf *cli) bindArguments(t *testing.T) {
	t.Helper()
	for exchange, arguments := range map[string]map[string]any{
		"amq.topic":   {"team": "billing"},
		"amq.headers": {"x-match": "all", "kind": "order", "version": 2},
	} {
		tf.Call(t, http.MethodPost, tf.Path("bindings", "e", exchange, "q", "declared"), map[string]any{"routing_key": "order.#", "arguments": arguments}, nil)
	}
}

// boundArguments counts those bindings that are there as they were.
func (tf *cli) boundArguments(t *testing.T) int {
	t.Helper()
	found := 0
	for _, want := range []string{
		"amq.topic declared order.# map[team:billing]", "amq.headers declared order.# map[kind:order version:2 x-match:all]",
	} {
		if slices.Contains(tf.bindings(t), want) {
			found++
		}
	}
	return found
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

// applyKilledUnbound applies, and kills Terraform when nothing leads to the declared queue any more.
func (tf *cli) applyKilledUnbound(t *testing.T) {
	t.Helper()
	left := 3
	if !tf.applyKilled(t, func(r *http.Request) bool {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/q/declared/") {
			left--
		}
		return left == 0
	}) {
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
