package delayedexchange_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// What the guide says that the provider's user needs is enough for everything.
func TestAccEveryRelease_PermissionsOfTheGuide(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	const own = `^events(\.deliver|\.delay\..+)?$`
	user, password := b.User(t, "policymaker", own, own, own)
	config := func(lines ...string) string {
		return fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password) + exchangeHCL(b, "events", lines...)
	}
	changed := config(`max_delay = "5s"`, `precision = "1s"`, `type = "direct"`, "policy_priority = 7")
	accept(t, b, acctest.Times(),
		resource.TestStep{Config: config(`max_delay = "10s"`)},
		// The levels that are not needed any more are seen to be empty, so the next plan removes them.
		resource.TestStep{Config: changed, PreConfig: func() { levelsAreReportedEmpty(t, b) }, ExpectNonEmptyPlan: true},
		resource.TestStep{Config: changed, PreConfig: func() { levelsAreReportedEmpty(t, b) }, ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_levels"), knownvalue.MapSizeExact(0)),
		}},
	)
}
