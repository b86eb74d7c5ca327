package apply

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// recorder is a management API that takes every write and remembers the policies. A real broker
// takes them just the same, but not in an election at the right moment.
func recorder(t *testing.T) (client *Applier, written func() []string) {
	t.Helper()
	var mutex sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]+" "+string(body))
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	client = applierOf(t, server.URL)
	return client, func() []string { mutex.Lock(); defer mutex.Unlock(); return slices.Clone(all) }
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

// A weaker policy may not take precedence over another while priorities change, or dead letters that a queue
// holds would be deleted.
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
		// A queue gets a policy of its own, which has to be there before the shared one lets go.
		"lowered with one taking over": {policies(10, "a", "b"), policies(5, "a", "b", "own"), []string{"own", "a", "b"}},
		"raised with one taking over":  {policies(10, "a", "b"), policies(20, "a", "b", "own"), []string{"own", "a", "b"}},
		"spread over more":             {policies(10, "a", "b"), policies(10, "a", "b", "b1"), []string{"b1", "a", "b"}},
		"spread again":                 {policies(10, "queues", "queues/2", "queues/10"), map[string]topology.Policy{"queues": policyOf(10), "queues/2": ranked(2), "queues/10": ranked(10)}, []string{"queues/10", "queues/2", "queues"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Change{Live: topology.Topology{Policies: test.live}}
			if order := names(c.writeOrder(test.wanted)); !slices.Equal(order, test.want) {
				t.Errorf("written in the order %q", order)
			}
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

// What a step lists is written in this order, and undone in the reverse one.
func TestPoliciesAreWrittenInTheOrderOfTheirStep(t *testing.T) {
	t.Parallel()
	client, written := recorder(t)
	live := map[string]topology.Policy{"a": policyOf(1), "b": policyOf(1)}
	e := client.execution(Change{Vhost: "v", Live: topology.Topology{Policies: live}, All: topology.Vhost{Version: topology.Version{Major: 4}}})
	order := []topology.NamedPolicy{{Name: "b", Policy: policyOf(2)}, {Name: "a", Policy: policyOf(2)}}
	require.NoError(t, e.run(t.Context(), []step{{do: put, policies: order}}))
	require.NoError(t, e.undo.rollback(t.Context()))
	var got []string
	for _, write := range written() {
		priority := strings.Contains(write, `"priority":2`)
		got = append(got, strings.Fields(write)[1]+map[bool]string{true: " new", false: " live"}[priority])
	}
	if want := []string{"b new", "a new", "a live", "b live"}; !slices.Equal(got, want) {
		t.Errorf("written: %q instead of %q", got, want)
	}
}

// A queue that was taken over goes back to the common policy, while another policy of a queue goes, too: both go after what
// replaces them.
func TestPolicyOfAQueueTakenOverGoesLast(t *testing.T) {
	t.Parallel()
	live := map[string]topology.Policy{"common": policyOf(10), "own": policyOf(10), "taken over": policyOf(11)}
	c := Change{Live: topology.Topology{Policies: live}, Wanted: topology.Topology{Policies: policies(10, "common")}}
	early, late := c.overtaking(map[string]topology.Policy{"own": live["own"], "taken over": live["taken over"]})
	if len(early) > 0 || len(late) != 2 {
		t.Errorf("first go %v, last go %v", early, late)
	}
}

// What stands behind a policy takes precedence once its priority has fallen, so it has to go before.
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
			if got := slices.Sorted(maps.Keys(early)); !slices.Equal(got, test.early) {
				t.Errorf("first go %q, want %q", got, test.early)
			}
			if got := slices.Sorted(maps.Keys(late)); !slices.Equal(got, test.late) {
				t.Errorf("last go %q, want %q", got, test.late)
			}
		})
	}
}
