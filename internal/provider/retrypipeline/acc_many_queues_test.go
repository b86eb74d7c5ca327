package retrypipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// RabbitMQ 4.3 takes no pattern of more than 1,024 bytes, so many work queues share several policies.
func TestAcc_ManyWorkQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for i := range 80 {
		b.DeclareQueue(t, fmt.Sprintf("work-queue.of.the.shop.%d", i), "classic", nil)
	}
	config := func(queues int) string {
		return pipelineHCL(b, `delays = ["5s"]`, `queue_type = "classic"`,
			fmt.Sprintf(`work_queues = { for i in range(%d) : "work-queue.of.the.shop.${i}" => { type = "classic" } }`, queues))
	}
	empty := resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	acceptQuickly(t, b,
		resource.TestStep{Config: config(20), ConfigPlanChecks: empty},
		resource.TestStep{Config: config(80), ConfigPlanChecks: empty, Check: attached(t, b, 80)},
		resource.TestStep{
			Config: config(80), ResourceName: address, ImportState: true, ImportStateVerify: true,
			ImportStateVerifyIdentifierAttribute: "name", ImportStateId: importID(b.Vhost, "orders"),
		},
		resource.TestStep{Config: config(20), ConfigPlanChecks: empty, Check: attached(t, b, 20)},
	)
}

// attached waits until the broker says that the pipeline's policies apply to so many queues.
func attached(t *testing.T, b *brokertest.Broker, want int) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		brokertest.Eventually(t, func() error {
			var queues []struct {
				Name, Policy string
			}
			b.Call(t, http.MethodGet, b.Path("queues"), nil, &queues)
			n := 0
			for _, queue := range queues {
				if strings.HasPrefix(queue.Policy, "retry/orders/queues") && !strings.HasPrefix(queue.Name, "orders.") {
					n++
				}
			}
			if n != want {
				return fmt.Errorf("%d queues are attached, want %d", n, want)
			}
			return nil
		})
		return nil
	}
}
