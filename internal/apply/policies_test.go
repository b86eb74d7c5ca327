package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// write is one write of a policy.
type write struct {
	name       string
	Pattern    string
	Priority   int
	Definition topology.Arguments
}

// electing returns a broker whose listings of queues show these leaders one after another, and the writes to it. A real
// cluster cannot be forced to elect a leader at the right moment.
func electing(t *testing.T, leaders ...string) (b *brokertest.Broker, a *Applier, written func() []write) {
	t.Helper()
	var mutex sync.Mutex
	var all []write
	b = brokertest.New(t)
	a = withoutLag(newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if strings.HasPrefix(r.URL.Path, "/api/overview") {
			api.ServeHTTP(w, r)
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprintf(w, `[{"name":"q","vhost":%q,"type":"quorum","leader":%s}]`, b.Vhost, leaders[0])
			leaders = leaders[min(1, len(leaders)-1):]
			return
		}
		body, _ := io.ReadAll(r.Body)
		policy := write{name: path.Base(r.URL.Path)}
		if err := json.Unmarshal(body, &policy); err != nil {
			t.Error(err)
		}
		all = append(all, policy)
		r.Body = io.NopCloser(bytes.NewReader(body))
		api.ServeHTTP(w, r)
	})))
	return b, a, func() []write { mutex.Lock(); defer mutex.Unlock(); return slices.Clone(all) }
}

func policyOf(priority int) topology.Policy {
	return topology.Policy{Pattern: "^q$", ApplyTo: "queues", Priority: priority, Definition: topology.Arguments{"dead-letter-exchange": "x"}}
}

func policies(priority int, names ...string) map[string]topology.Policy {
	all := map[string]topology.Policy{}
	for _, name := range names {
		all[name] = policyOf(priority)
	}
	return all
}

func ranked(rank int) topology.Policy {
	policy := policyOf(10)
	policy.Rank = rank
	return policy
}

// A weaker policy must not take precedence while priorities change. Otherwise a queue's dead letters would be deleted.
func TestPoliciesNeverOvertakeEachOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		live, wanted map[string]topology.Policy
		want         []string
	}{
		"raised":  {policies(10, "a", "b"), policies(20, "a", "b"), []string{"a", "b"}},
		"lowered": {policies(10, "a", "b"), policies(5, "a", "b"), []string{"a", "b"}},
		"new":     {nil, policies(5, "a", "b"), []string{"a", "b"}},
		// An interrupted change has left two priorities.
		"lowered from two": {map[string]topology.Policy{"a": policyOf(10), "b": policyOf(9)}, policies(5, "a", "b"), []string{"b", "a"}},
		"raised again":     {map[string]topology.Policy{"a": policyOf(10), "b": policyOf(20)}, policies(20, "a", "b"), []string{"a", "b"}},
		// A queue gets its own policy, which must exist before the shared one releases the queue.
		"lowered with one taking over": {policies(10, "a", "b"), policies(5, "a", "b", "own"), []string{"own", "a", "b"}},
		"raised with one taking over":  {policies(10, "a", "b"), policies(20, "a", "b", "own"), []string{"own", "a", "b"}},
		"spread over more":             {policies(10, "a", "b"), policies(10, "a", "b", "b1"), []string{"b1", "a", "b"}},
		"spread again":                 {policies(10, "queues", "queues/2", "queues/10"), map[string]topology.Policy{"queues": policyOf(10), "queues/2": ranked(2), "queues/10": ranked(10)}, []string{"queues/10", "queues/2", "queues"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Change{Live: topology.Topology{Policies: test.live}}
			require.Equal(t, test.want, names(c.writeOrder(test.wanted)))
		})
	}
}

func names(policies []topology.NamedPolicy) []string {
	var all []string
	for _, p := range policies {
		all = append(all, p.Name)
	}
	return all
}

// A step's policies are written in their order, and undone in reverse.
func TestPoliciesAreWrittenInTheOrderOfTheirStep(t *testing.T) {
	t.Parallel()
	b, a, written := electing(t)
	live := map[string]topology.Policy{"a": policyOf(1), "b": policyOf(1)}
	e := a.execution(Change{Vhost: b.Vhost, Live: topology.Topology{Policies: live}, All: topology.Vhost{Version: topology.Version{Major: 4}}})
	order := []topology.NamedPolicy{{Name: "b", Policy: policyOf(2)}, {Name: "a", Policy: policyOf(2)}}
	require.NoError(t, e.run(t.Context(), []step{{do: put, policies: order}}))
	require.NoError(t, e.undo.rollback(t.Context()))
	var got []string
	for _, w := range written() {
		got = append(got, fmt.Sprint(w.name, w.Priority))
	}
	require.Equal(t, []string{"b2", "a2", "a1", "b1"}, got)
}

// A queue returns to the common policy after a take-over, and another queue's policy is deleted too. Both policies are
// deleted after their replacements are written.
func TestPolicyOfAQueueTakenOverGoesLast(t *testing.T) {
	t.Parallel()
	live := map[string]topology.Policy{"common": policyOf(10), "own": policyOf(10), "taken over": policyOf(11)}
	c := Change{Live: topology.Topology{Policies: live}, Wanted: topology.Topology{Policies: policies(10, "common")}}
	early, late := c.overtaking(map[string]topology.Policy{"own": live["own"], "taken over": live["taken over"]})
	if len(early) > 0 || len(late) != 2 {
		t.Errorf("first go %v, last go %v", early, late)
	}
}

// A weaker policy would take precedence when a stronger policy's priority falls, so it must be deleted first.
func TestPoliciesThatWouldOvertakeGoFirst(t *testing.T) {
	t.Parallel()
	live := map[string]topology.Policy{"back": policyOf(9), "back/1": policyOf(9), "front": policyOf(10), "own": policyOf(10)}
	for name, test := range map[string]struct {
		priority    int
		early, late []string
	}{
		"lowered":   {5, []string{"back/1"}, []string{"own"}},
		"same":      {10, nil, []string{"back/1", "own"}},
		"raised":    {20, nil, []string{"back/1", "own"}},
		"just over": {9, []string{"back/1"}, []string{"own"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted := policies(test.priority, "back", "front")
			c := Change{Live: topology.Topology{Policies: live}, Wanted: topology.Topology{Policies: wanted}}
			early, late := c.overtaking(map[string]topology.Policy{"back/1": live["back/1"], "own": live["own"]})
			require.Equal(t, test.early, slices.Sorted(maps.Keys(early)))
			require.Equal(t, test.late, slices.Sorted(maps.Keys(late)))
		})
	}
}

// Before 4.0, a policy that is written during an election never takes effect, even if it is written again with the same
// content. From 4.0 on, a queue can miss the content that it is notified of.
func TestPoliciesOfClustersAreWrittenUntilTheyTakeEffect(t *testing.T) {
	t.Parallel()
	old := topology.Vhost{Version: topology.Version{Major: 3, Minor: 13}, Nodes: 3}
	alone, newer := old, old
	alone.Nodes, newer.Version = 1, topology.Version{Major: 4}
	for name, test := range map[string]struct {
		vhost   topology.Vhost
		leaders []string
		want    []string
	}{
		"at rest":                  {old, []string{`"a"`}, []string{"wanted"}},
		"a leader has to be found": {old, []string{`null`, `"a"`}, []string{"wanted"}},
		"an election meanwhile":    {old, []string{`"a"`, `"b"`}, []string{"wanted", "changed", "wanted"}},
		"an old node":              {alone, []string{`null`}, []string{"wanted"}},
		"a newer cluster":          {newer, []string{`null`}, []string{"changed", "wanted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a, written := electing(t, test.leaders...)
			e := a.execution(Change{Vhost: b.Vhost, All: test.vhost})
			// A creation must be the first writer, but can repeat its own writes.
			e.onlyNew = true
			require.NoError(t, e.run(t.Context(), []step{{do: put, policies: byName(map[string]topology.Policy{"p": policyOf(1)})}}))
			var got []string
			for _, w := range written() {
				got = append(got, map[bool]string{true: "changed", false: "wanted"}[w.Definition["max-length"] != nil])
			}
			require.Equal(t, test.want, got)
		})
	}
}

// If leaders change while a policy releases a queue, the policy is widened and then narrowed again.
func TestPolicyThatLetsGoIsWidenedBetweenElections(t *testing.T) {
	t.Parallel()
	b, a, written := electing(t, `"node1"`, `"node2"`)
	live, wanted := policyOf(1), policyOf(1)
	live.Pattern, wanted.Pattern = "^(own|q)$", "^own$"
	old := topology.Vhost{Version: topology.Version{Major: 3, Minor: 13}, Nodes: 3}
	change := Change{Vhost: b.Vhost, All: old, Live: topology.Topology{Policies: map[string]topology.Policy{"p": live}}}
	steps := []step{{do: put, policies: byName(map[string]topology.Policy{"p": wanted})}}
	require.NoError(t, a.execution(change).run(t.Context(), steps))
	var got []string
	for _, w := range written() {
		got = append(got, w.Pattern)
	}
	require.Equal(t, []string{wanted.Pattern, live.Pattern, wanted.Pattern}, got)
}
