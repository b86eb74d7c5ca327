package apply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A queue whose deletion is refused gets its bindings back, whatever its name.
func TestRefusalIsNoSilenceWhateverTheName(t *testing.T) {
	t.Parallel()
	const queue = "payment-timeout"
	b := brokertest.New(t)
	p, a := small(b), newApplier(t, b, b.Endpoint)
	p.WorkQueues = map[string]pipeline.WorkQueue{queue: {Type: topology.Quorum, Declare: true}}
	require.NoError(t, create(t, a, p))
	before := bindings(t, a, b)
	user, password := b.User(t, "policymaker", "^(?!"+queue+"$)", ".*", ".*")
	removal := noting(t, a, p, nil)
	removal.SharedQueues = []string{queue}
	err := applierAs(t, b.Endpoint, user, password).Remove(t.Context(), removal)
	if err == nil || !strings.Contains(err.Error(), `the permission configure on "`+queue+`"`) || strings.Contains(err.Error(), "did not say") {
		t.Errorf("got %v", err)
	}
	if after := bindings(t, a, b); after != before {
		t.Errorf("bindings before:\n%s\nafter:\n%s", before, after)
	}
}
