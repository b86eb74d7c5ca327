package plain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

func TestAcc_ErrorsNameBothEndsOfABinding(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for kind, named := range map[string]string{"queue": `Binding "from -> to" in vhost`, "exchange": `Binding "from -> to (exchange)" in vhost`} {
		c := core("rabbitmq_binding", map[string]any{"vhost": b.Vhost, "source": "from", "destination": "to", "destination_type": kind})
		_, err := c.PlanAndApply(t.Context())
		require.ErrorContains(t, err, named)
	}
}
