package audit_test

import (
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The audit follows the graph of each engine.
func TestFaultsOfEngines(t *testing.T) {
	t.Parallel()
	native, counting := expandedWith(pipeline.EngineNative, topology.Quorum, nil), expandedWith(pipeline.EngineConsumer, topology.Quorum, nil)
	altered := func(name, key string, value any) part {
		return func(v *topology.Vhost) { v.Policies[name].Definition[key] = value }
	}
	for name, c := range map[string]struct {
		vhost part
		rules []string
	}{
		"nobody is let in":      {all(counting, unbound("orders.retry")), []string{"pipeline-delay-unbound"}},
		"no way back":           {all(counting, unbound("orders.return")), []string{"pipeline-return-unbound"}},
		"a key of others":       {all(counting, altered("retry/orders/queue/work", "dead-letter-routing-key", "else")), []string{"pipeline-retry-ineffective"}},
		"no replay":             {all(native, unbound("orders.return")), []string{"pipeline-return-unbound"}},
		"another delay":         {all(native, altered("retry/orders/quorum-queues", "delayed-retry-min", number(7))), []string{"pipeline-retry-ineffective"}},
		"another type":          {all(native, altered("retry/orders/quorum-queues", "delayed-retry-type", "failed")), []string{"pipeline-retry-ineffective"}},
		"an argument":           {expandedWith(pipeline.EngineNative, topology.Quorum, args{"x-delivery-limit": number(1)}), []string{"pipeline-retry-ineffective"}},
		"a higher argument":     {expandedWith(pipeline.EngineNative, topology.Quorum, args{"x-delivery-limit": number(99)}), nil},
		"all of teams, native":  {teamsOf(pipeline.EngineNative), nil},
		"all of teams, counted": {teamsOf(pipeline.EngineConsumer), nil},
		"no work queue, native": {expandedOf(pipeline.EngineNative, topology.Quorum, nil), nil},
		"an operator's limit":   {all(native, operatorPolicy("^work$", args{"delivery-limit": number(1)})), []string{"pipeline-retry-ineffective"}},
		"nowhere to be parked":  {all(native, unbound("orders.failed")), []string{"dead-letter-unroutable", "work-queue-failed-unbound"}},
		"nowhere to be counted": {all(counting, unbound("orders.failed")), []string{"dead-letter-unroutable", "work-queue-failed-unbound"}},
	} {
		found := rulesOf(audit.Vhost(vhost(c.vhost)))
		if want := slices.Sorted(slices.Values(c.rules)); !slices.Equal(found, want) {
			t.Errorf("%s: found %q, want %q", name, found, want)
		}
	}
}

func operatorPolicy(pattern string, definition args) part {
	return func(v *topology.Vhost) {
		v.OperatorPolicies["operator"] = topology.Policy{Pattern: pattern, ApplyTo: "queues", Definition: definition}
	}
}
