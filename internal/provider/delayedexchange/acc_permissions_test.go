package delayedexchange_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// What the guide says that the provider's user needs is enough for everything.
func TestAcc_PermissionsOfTheGuide(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	const own = `^events(\.deliver|\.delay\..+)?$`
	user, password := b.User(t, "policymaker", own, own, own)
	config := func(lines ...string) string {
		return fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password) + exchangeHCL(b, "events", lines...)
	}
	accept(t, b, apply.DefaultTimes(),
		resource.TestStep{Config: config(`max_delay = "10s"`)},
		resource.TestStep{Config: config(`max_delay = "5s"`, `precision = "1s"`, `type = "direct"`, "policy_priority = 7")},
		resource.TestStep{Config: config(`max_delay = "5s"`, `precision = "1s"`, `type = "direct"`, "policy_priority = 7")},
	)
}
