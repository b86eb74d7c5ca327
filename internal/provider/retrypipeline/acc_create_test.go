package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// The broker refuses one object during the creation, and the objects created before are deleted.
func TestAccEveryRelease_FailedCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	withUser := as(b.User(t, "policymaker", `^orders\.(dlx|failed(\.route)?|retry|return|inbox)$`, ".*", ".*"))
	acceptQuickly(t, b,
		resource.TestStep{
			Config:      withUser + pipelineHCL(b, `delays = ["5s"]`),
			ExpectError: regexp.MustCompile(`(?s)Cannot create the pipeline.*orders\.retry\.5s.*401`),
		},
		resource.TestStep{
			PreConfig: func() { require.NoError(t, acctest.NothingLeft(t, b)) },
			Config:    pipelineHCL(b, `delays = ["5s"]`),
		},
	)
}

func TestAcc_QueueAndVhostMadeByTheSameApply(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	made := b.Vhost + "-made"
	t.Cleanup(func() { b.Call(t, http.MethodDelete, "/api/vhosts/"+made, nil, nil) })
	curl := fmt.Sprintf("curl -fsS -u %s:%s -H content-type:application/json -X PUT %s", b.Username, b.Password, b.Endpoint)
	config := fmt.Sprintf(`
resource "terraform_data" "vhost" {
  input = %q
  provisioner "local-exec" {
    command = "%s/api/vhosts/%s -d '{}' && %s/api/queues/%s/work -d '{\"durable\":true,\"arguments\":{\"x-queue-type\":\"quorum\"}}'"
  }
}
resource "rabbitmq_retry_pipeline" "orders" {
  name        = "orders"
  vhost       = terraform_data.vhost.input
  delays      = ["5s"]
  work_queues = { work = {} }
  depends_on  = [terraform_data.vhost]
}`, made, curl, made, curl, made)
	acceptTerraform(t, b, resource.TestStep{
		Config: config,
	})
}

func TestAccEveryRelease_MissingVhostAndMissingQueueAreErrorsBeforeAnythingIsCreated(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	acceptQuickly(t, b,
		resource.TestStep{
			Config:      pipelineHCL(&brokertest.Broker{Vhost: "no such vhost"}, `delays = ["5s"]`),
			ExpectError: regexp.MustCompile(`(?s)Vhost does not exist.*no such vhost`),
		},
		resource.TestStep{
			Config:      pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work.a" = {}, "work.b" = {} }`),
			ExpectError: regexp.MustCompile(`(?s)Work queues do not exist.*work\.a.*work\.b`),
		},
		resource.TestStep{
			PreConfig: func() { require.NoError(t, acctest.NothingLeft(t, b)) },
			Config:    pipelineHCL(b, `delays = ["5s"]`),
		},
	)
}

// If two resources have one name, one is created, and the other finds its objects.
func TestAcc_TwoResourcesOfOneName(t *testing.T) {
	t.Parallel()
	exist := regexp.MustCompile(`Objects exist already`)
	with := func(b *brokertest.Broker) (one, two string) {
		one = pipelineHCL(b, `delays = ["5s"]`)
		return one, one + pipelineLabelled(b, "twin", "orders", `delays = ["7s"]`)
	}
	t.Run("both new", func(t *testing.T) {
		t.Parallel()
		b := brokertest.New(t)
		_, two := with(b)
		acceptQuickly(t, b, resource.TestStep{Config: two, ExpectError: exist})
	})
	t.Run("one new", func(t *testing.T) {
		t.Parallel()
		b := brokertest.New(t)
		one, two := with(b)
		acceptQuickly(t, b,
			resource.TestStep{Config: one},
			resource.TestStep{Config: two, ExpectError: exist},
			resource.TestStep{Config: one, ConfigPlanChecks: unchanged},
			resource.TestStep{Config: one, Taint: []string{address}},
		)
	})
}

func TestAcc_ReplacementOfNameAndType(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	work := "work_queues = { work = {} }\n  force_destroy = true"
	replaced := resource.ConfigPlanChecks{
		PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionReplace)},
	}
	renamed := pipelineLabelled(b, "orders", "bills", `delays = ["5s"]`, work)
	acceptQuickly(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, work)},
		resource.TestStep{Config: renamed, ConfigPlanChecks: replaced},
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s"]`, work, `queue_type = "classic"`), ConfigPlanChecks: replaced},
	)
}

// The same apply creates, after the plan, a policy that the pipeline's policy would shadow. Apply refuses this as the plan
// would have, and creates nothing. It succeeds once the configuration has the policy's keys.
func TestAcc_ShadowedPolicyMadeByTheSameApply(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	remove := func() { b.Request(t, http.MethodDelete, b.Path("policies", "made"), nil) }
	config := func(serial int, lines ...string) string {
		return fmt.Sprintf(`
resource "terraform_data" "policy" {
  triggers_replace = %d
  provisioner "local-exec" {
    command = "curl -fsS -u %s:%s -H content-type:application/json -X PUT %s%s -d '{\"pattern\":\"^work$\",\"apply-to\":\"queues\",\"priority\":1,\"definition\":{\"delivery-limit\":9}}'"
  }
}
`, serial, b.Username, b.Password, b.Endpoint, b.Path("policies", "made")) +
			pipelineHCL(b, append(lines, `delays = ["5s"]`, `force_destroy = true`, `depends_on = [terraform_data.policy]`)...)
	}
	acceptTerraform(t, b,
		resource.TestStep{Config: config(1, `work_queues = { work = {} }`), ExpectError: says(`Keys of another policy would no longer apply.*"delivery-limit" = 9`)},
		resource.TestStep{
			PreConfig: func() {
				remove()
				require.NoError(t, acctest.NothingLeft(t, b))
			},
			Config: config(2, `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`),
		},
		resource.TestStep{
			PreConfig: remove,
			Config:    config(2, `work_queues = { work = { policy_definition_json = jsonencode({ "delivery-limit" = 9 }) } }`),
		},
	)
}
