package pipeline

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// attached tells which policy each of so many work queues has.
func attached(t *testing.T, queues int) map[string]string {
	t.Helper()
	p := orders()
	p.WorkQueues = map[string]WorkQueue{}
	for i := range queues {
		p.WorkQueues[fmt.Sprintf("shop.orders.work-queue.%d", i)] = WorkQueue{Type: topology.Quorum}
	}
	shared := topology.Vhost{Topology: topology.Topology{Queues: map[string]topology.Queue{}, Policies: map[string]topology.Policy{}}}
	for name, policy := range Expand(p).Policies {
		if len(policy.Pattern) > maxPattern {
			t.Errorf("the pattern of %s has %d bytes", name, len(policy.Pattern))
		}
		if !p.Names().ownsPolicy(name) {
			t.Errorf("%s is not the pipeline's", name)
		}
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
	if n := len(spread([]string{"a", "b"})); n != 1 {
		t.Errorf("%d groups for two short names", n)
	}
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

// The longest name that queues leave room for, all of it escaped.
func TestThePatternOfOwnQueuesFitsEveryName(t *testing.T) {
	t.Parallel()
	if pattern := Names(strings.Repeat(".", 250)).pattern(nil); len(pattern) > maxPattern {
		t.Errorf("%d bytes, and brokers take %d", len(pattern), maxPattern)
	}
}
