package broker

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// recorder is a management API that takes every write and remembers the policies. A real broker
// takes them just the same, but not in an election at the right moment.
func recorder(t *testing.T) (client *Client, written func() []string) {
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
	client, err := New(Config{Endpoint: server.URL, Username: "u", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	return client, func() []string { mutex.Lock(); defer mutex.Unlock(); return slices.Clone(all) }
}

func policyOf(priority int) topology.Policy {
	return topology.Policy{Pattern: "^q$", ApplyTo: "queues", Priority: priority, Definition: topology.Arguments{"dead-letter-exchange": "x"}}
}

// A policy that stands behind another may not beat it while priorities change, or dead letters that
// a queue holds would be deleted.
func TestPoliciesNeverOvertakeEachOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		live, wanted map[string]topology.Policy
		want         []string
	}{
		"raised":  {map[string]topology.Policy{"back": policyOf(9), "front": policyOf(10)}, map[string]topology.Policy{"back": policyOf(19), "front": policyOf(20)}, []string{"front", "back"}},
		"lowered": {map[string]topology.Policy{"back": policyOf(9), "front": policyOf(10)}, map[string]topology.Policy{"back": policyOf(4), "front": policyOf(5)}, []string{"back", "front"}},
		"new":     {nil, map[string]topology.Policy{"back": policyOf(4), "front": policyOf(5)}, []string{"front", "back"}},
		// A queue gets a policy of its own, which has to be there before the shared one lets go.
		"lowered with one taking over": {map[string]topology.Policy{"back": policyOf(9), "front": policyOf(10)}, map[string]topology.Policy{"back": policyOf(4), "front": policyOf(5), "own": policyOf(5)}, []string{"own", "back", "front"}},
		"raised with one taking over":  {map[string]topology.Policy{"back": policyOf(9), "front": policyOf(10)}, map[string]topology.Policy{"back": policyOf(19), "front": policyOf(20), "own": policyOf(20)}, []string{"own", "front", "back"}},
		"raised with a new one behind": {map[string]topology.Policy{"front": policyOf(10)}, map[string]topology.Policy{"back": policyOf(19), "front": policyOf(20)}, []string{"front", "back"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, written := recorder(t)
			c := client.changer(Change{Vhost: "v", Live: topology.Topology{Policies: test.live}, All: topology.Vhost{Version: topology.Version{Major: 4}}})
			if err := c.writePolicies(t.Context(), test.wanted); err != nil {
				t.Fatal(err)
			}
			var order []string
			for _, write := range written() {
				order = append(order, strings.Fields(write)[1])
			}
			if !slices.Equal(order, test.want) {
				t.Errorf("written in the order %q", order)
			}
		})
	}
}
