package retrypipeline_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The fallback policy, which knows no at-least-once, would win when the priority of the other has fallen
// and it is still there. The broker deletes the dead letters that a queue holds then.
func TestAcc_LoweredPriorityKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	declare(t, b, "work", "quorum")
	const messages = 3
	work := `work_queues = { "work" = {} }`
	accept(t, b,
		resource.TestStep{Config: pipeline(b, `delays = ["5s"]`, work)},
		resource.TestStep{
			PreConfig: func() {
				call(t, b, http.MethodDelete, b.Path("exchanges", "orders.dlx"), nil, nil)
				for range messages {
					rejectOne(t, b, "work")
				}
				brokertest.Eventually(t, 30*time.Second, func() error {
					if held := reported(t, b, "work", "messages_dlx"); held != messages {
						return fmt.Errorf("%d dead letters are held, want %d", held, messages)
					}
					return nil
				})
			},
			Config: pipeline(b, `delays = ["5s"]`, work, `policy_priority = 900`, `shield = false`),
			Check: func(*terraform.State) error {
				emptyInbox(t, b, messages)
				return nil
			},
		},
	)
}
