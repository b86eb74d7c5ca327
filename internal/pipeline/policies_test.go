package pipeline

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// every returns a pipeline with no setting at its default.
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
	require.Empty(t, cmp.Diff(want, every().Expand().Policies))
	arguments := every().Expand().Queues["declared"].Arguments
	if diff := cmp.Diff(topology.Arguments{"retry-declared-by": "orders", "x-single-active-consumer": true, "x-dead-letter-exchange": "orders.dlx"}, arguments); diff != "" {
		t.Error(diff)
	}
}

func TestRecoverGivesBackEverySetting(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Pipeline{"every": every(), "shared": sharing()} {
		live := p.Expand()
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
		require.Empty(t, cmp.Diff(p, got), name)
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
		require.Len(t, atRisk(one(WorkQueue{Type: topology.Quorum}), next.Expand()), test.want, name)
	}
	argued := one(WorkQueue{Type: topology.Quorum, Attach: AttachArguments})
	detached := one(WorkQueue{})
	detached.WorkQueues = nil
	require.Empty(t, atRisk(argued, detached.Expand()), "detaching a queue that keeps its arguments")
	require.Len(t, atRisk(argued, topology.Topology{}), 1, "destroying what its arguments point at")
}

func TestPolicyNamesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	for name, want := range map[string]struct {
		scope   policyScope
		written string
	}{
		"retry/orders/queues":             {queuesPolicy, n.groupPolicy(queuesPolicy, 0)},
		"retry/orders/queues/12":          {queuesPolicy, n.groupPolicy(queuesPolicy, 12)},
		"retry/orders/quorum-queues/1":    {quorumPolicy, n.groupPolicy(quorumPolicy, 1)},
		"retry/orders/classic-queues":     {classicPolicy, n.groupPolicy(classicPolicy, 0)},
		"retry/orders/queue/a":            {queuePolicy, n.QueuePolicy("a")},
		"retry/orders/queue/a/b":          {queuePolicy, n.QueuePolicy("a/b")},
		"retry/orders/attachment/queue/a": {attachmentPolicy, n.AttachmentPolicy("queue/a")},
	} {
		pipeline, scope, is := parsePolicyName(name)
		if !is || pipeline != n || scope != want.scope || want.written != name {
			t.Errorf("%s: %q, %q, %t; written %q", name, pipeline, scope, is, want.written)
		}
	}
	for _, name := range []string{
		"", "retry", "retry/orders", "retry/orders/", "retry//queues", "other/orders/queues", "retry/orders/own", "retry/orders/queues/",
		"retry/orders/queues/0", "retry/orders/queues/01", "retry/orders/queues/x", "retry/orders/queues/-1", "retry/orders/queue", "retry/orders/queue/",
	} {
		if pipeline, scope, is := parsePolicyName(name); is {
			t.Errorf("%q is taken for %q of %q", name, scope, pipeline)
		}
	}
}

// attached returns the policy of each of this many work queues.
func attached(t *testing.T, queues int) map[string]string {
	t.Helper()
	p := orders()
	p.WorkQueues = map[string]WorkQueue{}
	for i := range queues {
		p.WorkQueues[fmt.Sprintf("shop.orders.work-queue.%d", i)] = WorkQueue{Type: topology.Quorum}
	}
	shared := topology.Vhost{Topology: topology.Topology{Queues: map[string]topology.Queue{}, Policies: map[string]topology.Policy{}}}
	for name, policy := range p.Expand().Policies {
		if len(policy.Pattern) > maxPattern {
			t.Errorf("the pattern of %s has %d bytes", name, len(policy.Pattern))
		}
		require.True(t, p.Names().ownsPolicy(name), name)
		if p.Names().isSharedPolicy(name) {
			shared.Policies[name] = policy
		}
	}
	for queue, w := range p.WorkQueues {
		shared.Queues[queue] = topology.Queue{Type: w.Type}
	}
	lookup := topology.NewLookup(shared)
	found := map[string]string{}
	for queue := range p.WorkQueues {
		for _, policy := range lookup.Queue(queue).Policies {
			if found[queue] != "" {
				t.Errorf("%s and %s apply to %s", found[queue], policy.Name, queue)
			}
			found[queue] = policy.Name
		}
	}
	if len(found) != queues {
		t.Errorf("%d of %d queues have a policy", len(found), queues)
	}
	return found
}

func TestWorkQueuesAreSpreadOverPolicies(t *testing.T) {
	t.Parallel()
	before := attached(t, 1)
	for _, queues := range []int{2, 30, 31, 60, 61, 500} {
		after := attached(t, queues)
		existed := map[string]bool{}
		for _, policy := range before {
			existed[policy] = true
		}
		for queue, policy := range before {
			if after[queue] != policy && existed[after[queue]] {
				t.Errorf("with %d queues, %s moves from %s to %s, which was there before", queues, queue, policy, after[queue])
			}
		}
		before = after
	}
}

func TestSpreadOfLongNames(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{nil, {"a"}, {fmt.Sprintf("%0255d", 1), fmt.Sprintf("%0255d", 2), fmt.Sprintf("%0255d", 3), fmt.Sprintf("%0255d", 4), fmt.Sprintf("%0255d", 5)}} {
		if got := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(spread(names)))...))); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
			t.Errorf("%d names became %d", len(names), len(got))
		}
	}
	require.Len(t, spread([]string{"a", "b"}), 1)
}

func TestThePatternCoversEveryDelay(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(Names("or.ders").pattern([]string{"work"}))
	for _, delay := range []time.Duration{
		time.Millisecond, 1500 * time.Millisecond, time.Second, 90500 * time.Millisecond, time.Minute, time.Hour, 90*time.Minute + 3*time.Millisecond, MaxDelay,
	} {
		if name := Names("or.ders").RetryQueue(delay); !pattern.MatchString(name) {
			t.Errorf("%s is not covered", name)
		}
	}
	for name, covered := range map[string]bool{
		"or.ders.inbox": true, "or.ders.failed": true, "or.ders.retry.1": true, "or.ders.retry.1s.x": true,
		"or.ders.retry.": false, "or.ders.retry.x": false, "or.ders.retry": false, "orxders.inbox": false, "or.ders.inbox.2": false,
		"works": false, "or.ders.work": false, "an.or.ders.inbox": false,
	} {
		if pattern.MatchString(name) != covered || Names("or.ders").CoversQueue(name) != covered {
			t.Errorf("%s is covered: %t, %t", name, pattern.MatchString(name), Names("or.ders").CoversQueue(name))
		}
	}
}

// The longest possible pipeline name, with every character escaped.
func TestThePatternOfOwnQueuesFitsEveryName(t *testing.T) {
	t.Parallel()
	if pattern := Names(strings.Repeat(".", 250)).pattern(nil); len(pattern) > maxPattern {
		t.Errorf("%d bytes, and brokers take %d", len(pattern), maxPattern)
	}
}

// The merged patterns match exactly the names that one of the patterns matches.
func TestMergePermissions(t *testing.T) {
	t.Parallel()
	merged := MergePermissions([]Permissions{WorkerPermissions("orders"), WorkerPermissions("bills"), WorkerPermissions("orders"), {Read: "", Write: "x.y"}})
	require.Equal(t, "^$", merged.Configure)
	for pattern, names := range map[string]map[string]bool{
		merged.Write: {"orders.retry": true, "bills.failed": true, "amq.default": true, "orders.inbox": false, "orders.retry.5s": false, "x.y": true},
		merged.Read:  {"orders.inbox": true, "bills.inbox": true, "others.inbox": false, "": false},
	} {
		for name, want := range names {
			require.Equalf(t, want, regexp.MustCompile(pattern).MatchString(name), "%q matches %q", pattern, name)
		}
	}
	require.Equal(t, Permissions{"^$", "^$", "^$"}, MergePermissions(nil))
}
