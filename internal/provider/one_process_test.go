package provider_test

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Since 1.15, `terraform test` runs all operations of a file in one process, which is configured once.
func TestAcc_OneProcessForManyOperations(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.WithQueues(t, "work")
	process := &acctest.Process{}
	core := func(kind string, config map[string]any) *acctest.Core {
		config["vhost"] = b.Vhost
		return &acctest.Core{Type: "rabbitmq_" + kind, Config: config, Times: acctest.Quick(), Process: process}
	}
	orders := core("retry_pipeline", map[string]any{"name": "orders", "delays": []string{"5s"}})
	attached := core("retry_attachment", map[string]any{"pipeline": "orders", "queue": "work"})
	events := core("delayed_exchange", map[string]any{"name": "events", "max_delay": "7s", "precision": "1s"})
	all := []*acctest.Core{orders, attached, events}
	plans := func(empty bool) {
		t.Helper()
		for _, c := range all {
			plan, err := c.Plan(t.Context())
			if err != nil || plan.Empty() != empty {
				t.Fatalf("%s: %v; empty: %t, want %t", c.Type, err, plan.Empty(), empty)
			}
		}
	}
	applies := func() {
		t.Helper()
		for _, c := range all {
			c.MustApply(t)
		}
	}
	audited := func() any {
		t.Helper()
		audit, err := process.Data(t.Context(), "rabbitmq_dead_letter_audit", map[string]any{"vhost": b.Vhost})
		require.NoError(t, err)
		return audit["error_count"]
	}

	plans(false)
	applies()
	plans(true)
	orders.Config["delays"] = []string{"5s", "30s"}
	events.Config["max_delay"] = "15s"
	attached.Config["policy_priority"] = 1500
	plans(false)
	applies()
	plans(true)

	before := audited()
	b.DeclareQueue(t, "broken", "classic", map[string]any{"x-dead-letter-exchange": "missing"})
	if after := audited(); reflect.DeepEqual(before, after) {
		t.Errorf("an audit after a change on the broker still finds %v errors", after)
	}
	for _, object := range [][]string{{"queues", "orders.retry.30s"}, {"policies", "retry/orders/attachment/work"}, {"queues", "events.delay.1s.3"}} {
		b.Call(t, http.MethodDelete, b.Path(object[0], object[1]), nil, nil)
	}
	plans(false)
	applies()
	plans(true)
	for i := range all {
		require.NoError(t, all[len(all)-1-i].Destroy(t.Context()))
	}
	plans(false)
}
