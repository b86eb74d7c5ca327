package retrypipeline_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// define puts these in the place of the pipeline's definition.
func define(t *testing.T, b *brokertest.Broker, definitions ...any) {
	t.Helper()
	deleteDefinition(t, b, "orders")
	bindings := b.Path("bindings", "e", "orders.failed", "q", "orders.failed")
	for _, definition := range definitions {
		b.Call(t, http.MethodPost, bindings, map[string]any{"arguments": map[string]any{"retry-definition": definition}}, nil)
	}
}

// deleteDefinition deletes the binding that identifies a pipeline.
func deleteDefinition(t *testing.T, b *brokertest.Broker, name string) {
	t.Helper()
	address := b.Path("bindings", "e", name+".failed", "q", name+".failed")
	var bindings []struct {
		Key string `json:"properties_key"`
	}
	b.Call(t, http.MethodGet, address, nil, &bindings)
	for _, binding := range bindings {
		b.Call(t, http.MethodDelete, address+"/"+binding.Key, nil, nil)
	}
}

// A definition that somebody has damaged is refused by an import, which names the binding, and repaired where there is
// a state, which touches nothing else.
func TestAcc_DamagedDefinition(t *testing.T) {
	t.Parallel()
	const (
		healthy = `{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}`
		at      = `the argument retry-definition of the binding from "orders.failed" to "orders.failed" `
	)
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`)
	steps := []resource.TestStep{{Config: config}}
	for _, c := range []struct {
		definitions []any
		says        string
	}{
		{[]any{"{"}, at + `cannot be read`},
		{[]any{strings.Repeat("x", 4000)}, at + `cannot be read`},
		{[]any{7}, at + `is no text`},
		{[]any{map[string]any{"version": 1}}, at + `is no text`},
		{[]any{strings.Replace(healthy, ":2,", ":-5,", 1)}, at + `has a wrong number of attempts, -5`},
		{[]any{strings.Replace(healthy, "5s", "5 s", 1)}, at + `has a wrong delay 0: "5 s" is not a duration`},
		{[]any{strings.Replace(healthy, `["5s"]`, "[]", 1)}, at + `lacks delays`},
		{[]any{healthy, "{"}, `several bindings from "orders.failed" to "orders.failed"`},
	} {
		var before acctest.Listing
		steps = append(steps,
			resource.TestStep{
				PreConfig: func() { before = acctest.List(t, b); define(t, b, c.definitions...) },
				Config:    config, ResourceName: address, ImportState: true, ImportStateId: importID(b.Vhost, "orders"),
				ExpectError: says(c.says + ".*run terraform apply"),
			},
			resource.TestStep{Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
			resource.TestStep{Config: config, Check: func(*terraform.State) error { return before.RequireSame(acctest.List(t, b)) }},
		)
	}
	acceptQuickly(t, b, steps...)
}
