package retrypipeline_test

import (
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

const (
	plainDefinition   = `orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s","30s"],"max_attempts":3,"retry_on":["rejected"]}'`
	limitedDefinition = `orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s","30s"],"max_attempts":3,"retry_on":["rejected"],` +
		`"max_age":"60m","queue_max_attempts":{"work":2,"work.b":9}}'`
)

// workerHas checks what the sidecar is told.
func workerHas(age knownvalue.Check, attempts map[string]knownvalue.Check) statecheck.StateCheck {
	queues := map[string]knownvalue.Check{}
	for queue, check := range attempts {
		queues[queue] = knownvalue.ObjectPartial(map[string]knownvalue.Check{"max_attempts": check})
	}
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("worker"), knownvalue.ObjectPartial(map[string]knownvalue.Check{
		"max_age": age, "work_queues": knownvalue.MapExact(queues),
	}))
}

// Age and attempts are kept on the broker: they change in place, an import brings them back, and what
// somebody else makes of them is drift that an apply repairs.
func TestAcc_MaxAgeAndAttemptsOfAQueue(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, queue := range []string{"work", "work.b", "work.c"} {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	plain := pipelineHCL(b, `delays = ["5s", "30s"]`, `work_queues = { work = {}, "work.b" = {}, "work.c" = {} }`)
	limited := pipelineHCL(b, `delays = ["5s", "30s"]`, `max_age = "60m"`,
		`work_queues = { work = { max_attempts = 2 }, "work.b" = { max_attempts = 9 }, "work.c" = {} }`)
	none, in := knownvalue.Null(), plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)
	unlimited := workerHas(none, map[string]knownvalue.Check{"work": none, "work.b": none, "work.c": none})
	limits := workerHas(knownvalue.StringExact("1h"), map[string]knownvalue.Check{
		"work": knownvalue.Int64Exact(2), "work.b": knownvalue.Int64Exact(9), "work.c": none,
	})
	empty := []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	changes := func(before, after string) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{
			PreApply:             []plancheck.PlanCheck{in, onlyDiffers{"bindings " + before, "bindings " + after}},
			PostApplyPostRefresh: empty,
		}
	}
	acceptQuickly(t, b,
		resource.TestStep{
			Config: limited, ConfigStateChecks: []statecheck.StateCheck{limits},
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: empty},
		},
		resource.TestStep{
			Config: limited, ResourceName: address, ImportState: true,
			ImportStateKind: resource.ImportBlockWithID, ImportStateId: importID(b.Vhost, "orders"),
		},
		resource.TestStep{
			Config: limited, ResourceName: address, ImportState: true, ImportStateVerify: true,
			ImportStateVerifyIdentifierAttribute: "name", ImportStateId: importID(b.Vhost, "orders"),
		},
		resource.TestStep{
			Config: plain, ConfigStateChecks: []statecheck.StateCheck{unlimited},
			ConfigPlanChecks: changes(limitedDefinition, plainDefinition),
		},
		resource.TestStep{
			Config: limited, ConfigStateChecks: []statecheck.StateCheck{limits},
			ConfigPlanChecks: changes(plainDefinition, limitedDefinition),
		},
		resource.TestStep{
			PreConfig: func() {
				redefine(t, b, `{"version":1,"delays":["5s","30s"],"max_attempts":3,"retry_on":["rejected"]}`)
			},
			Config: limited, ConfigStateChecks: []statecheck.StateCheck{limits},
			ConfigPlanChecks: changes(plainDefinition, limitedDefinition),
		},
	)
}

// redefine puts another definition in place of the pipeline's.
func redefine(t *testing.T, b *brokertest.Broker, definition string) {
	t.Helper()
	path := b.Path("bindings", "e", "orders.failed", "q", "orders.failed")
	var bindings []struct {
		PropertiesKey string `json:"properties_key"`
	}
	b.Call(t, http.MethodGet, path, nil, &bindings)
	b.Call(t, http.MethodPost, path, map[string]any{"routing_key": "", "arguments": map[string]any{"retry-definition": definition}}, nil)
	for _, binding := range bindings {
		b.Call(t, http.MethodDelete, path+"/"+binding.PropertiesKey, nil, nil)
	}
}

// The age counts in the sum of the waits, known while work queues are not.
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

func TestAcc_WrongLimitsAreReportedAtTheirAttributes(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for at, attributes := range map[string]map[string]any{
		`AttributeName("max_age")`: {"max_age": "0s"},
		`AttributeName("work_queues").ElementKeyString("a.b")`: {
			"work_queues": map[string]any{"a.b": map[string]any{"max_attempts": 1}},
		},
	} {
		attributes["name"], attributes["delays"] = "orders", []string{"5s"}
		c := acctest.Core{Type: resourceType, Config: attributes, Times: acctest.Times()}
		found, err := c.Validate(t.Context())
		if err != nil || len(found) != 1 || found[0].Attribute.String() != at {
			t.Errorf("%v: %+v, want one error at %s", err, found, at)
		}
	}
}
