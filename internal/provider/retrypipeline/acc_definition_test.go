package retrypipeline_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// define replaces the pipeline's definition.
func define(t *testing.T, b *brokertest.Broker, definitions ...any) {
	t.Helper()
	unbound("orders.failed", "orders.failed")(t, b)
	for _, definition := range definitions {
		bound("orders.failed", "orders.failed", "", map[string]any{"retry-definition": definition})(t, b)
	}
}

// An import refuses a damaged definition and names the binding. If there is a state, an apply repairs the definition and
// changes nothing else.
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
		{[]any{map[string]any{"version": 1}}, at + `is no text`},
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

// A newer release manages the pipeline. This one reads its definition if it can, and never replaces or deletes it.
func TestAcc_DefinitionOfANewerRelease(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	at := map[string]any{"name": "orders", "vhost": b.Vhost, "delays": []any{"5s"}}
	p := &acctest.Core{Type: "rabbitmq_retry_pipeline", Config: at, Times: acctest.Quick()}
	p.MustApply(t)
	at["delays"] = []any{"6s"}
	planned, err := p.Plan(t.Context())
	require.NoError(t, err)
	const newer = `{"version":1,"min_reader":"%s","shape":{"new":1},"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}`
	for minReader, want := range map[string]string{"0.1": "was written by a newer release", "0.3": "needs release 0.3 or later"} {
		define(t, b, fmt.Sprintf(newer, minReader))
		before := acctest.List(t, b)
		_, err = p.Plan(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, p.Apply(t.Context(), planned), want, "planned before")
		require.ErrorContains(t, p.Destroy(t.Context()), want)
		require.NoError(t, before.RequireSame(acctest.List(t, b)))

		imported := &acctest.Core{Type: p.Type, Config: at, Times: acctest.Quick()}
		require.NoError(t, imported.Import(t.Context(), importID(b.Vhost, "orders")))
		_, err = imported.Plan(t.Context())
		require.ErrorContains(t, err, want)
		attachment := &acctest.Core{Type: "rabbitmq_retry_attachment", Times: acctest.Quick(), Config: map[string]any{
			"vhost": b.Vhost, "pipeline": "orders", "queue": "work",
		}}
		_, attached := attachment.Plan(t.Context())
		_, read := (&acctest.Process{}).Data(t.Context(), "rabbitmq_retry_pipeline", map[string]any{"vhost": b.Vhost, "name": "orders"})
		readable := minReader == "0.1"
		for what, err := range map[string]error{"attachment": attached, "data source": read} {
			if readable {
				require.NoError(t, err, what)
			} else {
				require.ErrorContains(t, err, want, what)
			}
		}
	}
	define(t, b, "{", fmt.Sprintf(newer, "0.3")) // one of them was damaged by hand
	_, err = p.Plan(t.Context())
	require.ErrorContains(t, err, "needs release 0.3 or later")
	require.ErrorContains(t, p.Destroy(t.Context()), "needs release 0.3 or later")
	define(t, b, `{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}`)
	at["delays"] = []any{"5s"}
	p.RequireEmptyPlan(t)
	require.NoError(t, p.Destroy(t.Context()))
}

// If a note of a deleted binding was changed by hand, plans and destroys fail with a remedy. No object is deleted or bound.
func TestAcc_GarbledNoteOfADeletedBinding(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`)
	at := b.Path("bindings", "e", "orders.return", "e", "orders.failed")
	const garbage = `{"source":"amq.topic","queue":"orders.inbox","key":"#"}`
	var before acctest.Listing
	same := func() { require.NoError(t, before.RequireSame(acctest.List(t, b))) }
	acceptQuickly(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				b.Call(t, http.MethodPost, at, map[string]any{"routing_key": "unbound:0123", "arguments": map[string]any{"retry-unbound": garbage}}, nil)
				before = acctest.List(t, b)
			},
			Config: config, ExpectError: says("Unreadable note of a deleted binding.*delete this binding"),
		},
		resource.TestStep{PreConfig: same, Config: config, Destroy: true, ExpectError: says("Unreadable note of a deleted binding")},
		resource.TestStep{
			PreConfig: func() {
				same()
				var found []struct {
					Key string `json:"properties_key"`
				}
				b.Call(t, http.MethodGet, at, nil, &found)
				b.Call(t, http.MethodDelete, at+"/"+found[0].Key, nil, nil)
			},
			Config: config, ConfigPlanChecks: unchanged,
		},
	)
}

const (
	plainDefinition   = `orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s","30s"],"max_attempts":3,"retry_on":["rejected"]}'`
	limitedDefinition = `orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s","30s"],"max_attempts":3,"retry_on":["rejected"],` +
		`"max_age":"60m","queue_max_attempts":{"work":2,"work.b":9}}'`
)

// workerHas checks the sidecar's configuration.
func workerHas(age knownvalue.Check, attempts map[string]knownvalue.Check) statecheck.StateCheck {
	queues := map[string]knownvalue.Check{}
	for queue, check := range attempts {
		queues[queue] = knownvalue.ObjectPartial(map[string]knownvalue.Check{"max_attempts": check})
	}
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("worker"), knownvalue.ObjectPartial(map[string]knownvalue.Check{
		"max_age": age, "work_queues": knownvalue.MapExact(queues),
	}))
}

// The broker keeps max_age and max_attempts. They change in place, an import restores them, and a change by hand is drift
// that an apply repairs.
func TestAcc_MaxAgeAndAttemptsOfAQueue(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work", "work.b", "work.c")
	plain := pipelineHCL(b, `delays = ["5s", "30s"]`, `work_queues = { work = {}, "work.b" = {}, "work.c" = {} }`)
	limited := pipelineHCL(b, `delays = ["5s", "30s"]`, `max_age = "60m"`,
		`work_queues = { work = { max_attempts = 2 }, "work.b" = { max_attempts = 9 }, "work.c" = {} }`)
	none, in := knownvalue.Null(), plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)
	unlimited := workerHas(none, map[string]knownvalue.Check{"work": none, "work.b": none, "work.c": none})
	limits := workerHas(knownvalue.StringExact("1h"), map[string]knownvalue.Check{
		"work": knownvalue.Int64Exact(2), "work.b": knownvalue.Int64Exact(9), "work.c": none,
	})
	changes := func(before, after string) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{in, onlyDiffers{"bindings " + before, "bindings " + after}}}
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: limited, ConfigStateChecks: []statecheck.StateCheck{limits}},
		importBlock(b, limited, "orders"),
		isImported(b),
		resource.TestStep{
			Config: plain, ConfigStateChecks: []statecheck.StateCheck{unlimited},
			ConfigPlanChecks: changes(limitedDefinition, plainDefinition),
		},
		resource.TestStep{
			Config: limited, ConfigStateChecks: []statecheck.StateCheck{limits},
			ConfigPlanChecks: changes(plainDefinition, limitedDefinition),
		},
		resource.TestStep{
			PreConfig: func() { define(t, b, `{"version":1,"delays":["5s","30s"],"max_attempts":3,"retry_on":["rejected"]}`) },
			Config:    limited, ConfigStateChecks: []statecheck.StateCheck{limits},
			ConfigPlanChecks: changes(plainDefinition, limitedDefinition),
		},
	)
}

// The sum of the waits includes max_age, and is known even if work queues are not.
func TestAcc_GivesUpAfterMaxAge(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := "resource \"terraform_data\" \"later\" { input = { work = { declare = true } } }\n" +
		pipelineHCL(b, `delays = ["5s", "30s"]`, `max_age = "20s"`, `work_queues = terraform_data.later.output`, `force_destroy = true`)
	sum := tfjsonpath.New("gives_up_after")
	acceptTerraform(t, b, resource.TestStep{
		Config: config,
		ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectKnownValue(address, sum, knownvalue.StringExact("5s")),
		}},
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, sum, knownvalue.StringExact("5s"))},
	})
}
