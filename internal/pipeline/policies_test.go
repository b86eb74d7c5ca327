package pipeline

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// every is a pipeline with every setting that differs from its default.
func every() Pipeline {
	p := orders()
	p.PolicyPriority, p.MaxAge = 7, Delay{24 * time.Hour, "1440m"}
	p.PolicyDefinition = topology.Arguments{"consumer-timeout": int64(60000), "queue-leader-locator": "balanced"}
	p.WorkQueues = map[string]WorkQueue{
		"plain":    {Type: topology.Quorum, Attach: AttachPolicy},
		"bounded":  {Type: topology.Quorum, Attach: AttachPolicy, DeadLetterStrategy: topology.AtMostOnce, PolicyDefinition: topology.Arguments{"max-length": int64(5), "queue-leader-locator": nil}},
		"classic":  {Type: topology.Classic, Attach: AttachPolicy, MaxAttempts: 9, PolicyDefinition: topology.Arguments{"consumer-timeout": int64(1)}},
		"argued":   {Type: topology.Quorum, Attach: AttachArguments},
		"declared": {Type: topology.Quorum, Attach: AttachArguments, Declare: true, MaxAttempts: 2, DeadLetterStrategy: topology.AtMostOnce, Arguments: topology.Arguments{"x-single-active-consumer": true}},
	}
	return p
}

func TestPoliciesHoldWhatTheUserAdds(t *testing.T) {
	t.Parallel()
	deadLettering := topology.Arguments{"dead-letter-exchange": "orders.dlx", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}
	want := map[string]topology.Policy{
		"retry/orders/queues": {Pattern: Names("orders").pattern(nil), ApplyTo: "queues", Priority: 7, Definition: deadLettering},
		"retry/orders/quorum-queues": {Pattern: "^(plain)$", ApplyTo: "queues", Priority: 7, Definition: topology.Arguments{
			"dead-letter-exchange": "orders.dlx", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish",
			"consumer-timeout": int64(60000), "queue-leader-locator": "balanced",
		}},
		"retry/orders/queue/bounded": {Pattern: "^(bounded)$", ApplyTo: "queues", Priority: 7, Definition: topology.Arguments{
			"dead-letter-exchange": "orders.dlx", "consumer-timeout": int64(60000), "max-length": int64(5),
		}},
		"retry/orders/queue/classic": {Pattern: "^(classic)$", ApplyTo: "queues", Priority: 7, Definition: topology.Arguments{
			"dead-letter-exchange": "orders.dlx", "consumer-timeout": int64(1), "queue-leader-locator": "balanced",
		}},
	}
	if diff := cmp.Diff(want, Expand(every()).Policies); diff != "" {
		t.Error(diff)
	}
	arguments := Expand(every()).Queues["declared"].Arguments
	if diff := cmp.Diff(topology.Arguments{"retry-declared-by": "orders", "x-single-active-consumer": true, "x-dead-letter-exchange": "orders.dlx"}, arguments); diff != "" {
		t.Error(diff)
	}
}

func TestRecoverGivesBackEverySetting(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Pipeline{"every": every(), "shared": sharing()} {
		live := Expand(p)
		for queue, w := range p.WorkQueues {
			if w.Declare {
				continue
			}
			live.Queues[queue] = topology.Queue{Type: w.Type}
			if w.Attach == AttachArguments {
				live.Queues[queue] = topology.Queue{Type: w.Type, Arguments: p.DeadLetterArguments(queue)}
			}
		}
		got, err := Recover(p.Name, p.Vhost, live)
		require.NoError(t, err)
		if diff := cmp.Diff(p, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func sharing() Pipeline {
	p := every()
	p.WorkQueues = maps.Clone(p.WorkQueues)
	p.WorkQueues["more"] = p.WorkQueues["bounded"]
	p.WorkQueues["still more"] = p.WorkQueues["bounded"]
	return p
}

func TestDeadLettersAtRiskOnlyWhereDeadLettersWouldBeDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*WorkQueue)
		want   int
	}{
		"a key is added":        {func(w *WorkQueue) { w.PolicyDefinition = topology.Arguments{"consumer-timeout": int64(1)} }, 0},
		"the strategy weakens":  {func(w *WorkQueue) { w.DeadLetterStrategy = topology.AtMostOnce }, 1},
		"the policy is removed": {func(w *WorkQueue) { w.Attach = AttachArguments }, 1},
	} {
		next := one(WorkQueue{Type: topology.Quorum})
		w := next.WorkQueues["work"]
		test.change(&w)
		next.WorkQueues["work"] = w
		if got := atRisk(one(WorkQueue{Type: topology.Quorum}), Expand(next)); len(got) != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	argued := one(WorkQueue{Type: topology.Quorum, Attach: AttachArguments})
	detached := one(WorkQueue{})
	detached.WorkQueues = nil
	if got := atRisk(argued, Expand(detached)); len(got) != 0 {
		t.Errorf("detaching a queue that keeps its arguments: %q", got)
	}
	if got := atRisk(argued, topology.Topology{}); len(got) != 1 {
		t.Errorf("destroying what its arguments point at: %q", got)
	}
}
