package apply

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// electing is a management API whose listings of queues have one of these leaders after another. A
// real cluster cannot be made to elect at the right moment.
func electing(t *testing.T, leaders ...string) (client *Applier, written func() []string) {
	t.Helper()
	var mutex sync.Mutex
	var writes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprintf(w, `[{"name":"q","vhost":"v","type":"quorum","leader":%s}]`, leaders[0])
			leaders = leaders[min(1, len(leaders)-1):]
			return
		}
		body, _ := io.ReadAll(r.Body)
		content := "wanted"
		if strings.Contains(string(body), "max-length") {
			content = "changed"
		}
		writes = append(writes, content)
		status := http.StatusNoContent
		if len(writes) == 1 {
			status = http.StatusCreated
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	client = applierOf(t, server.URL)
	return client, func() []string { mutex.Lock(); defer mutex.Unlock(); return slices.Clone(writes) }
}

// Before 4.0 a policy that is written during an election never takes effect, and the same content
// again does not repair it. Later, a queue may not see the content that it is told of.
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
			client, written := electing(t, test.leaders...)
			e := client.execution(Change{Vhost: "v", All: test.vhost})
			// A create demands to be the first to write, but not of its own repetitions.
			e.onlyNew = true
			require.NoError(t, e.run(t.Context(), []step{{do: put, policies: byName(map[string]topology.Policy{"p": policyOf(1)})}}))
			if got := written(); !slices.Equal(got, test.want) {
				t.Errorf("written: %q instead of %q", got, test.want)
			}
		})
	}
}

// A queue that a policy lets go of in an election is told once more only if the policy had it meanwhile.
func TestPolicyThatLetsGoIsWidenedBetweenElections(t *testing.T) {
	t.Parallel()
	var mutex sync.Mutex
	var written []string
	listings := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if r.Method == http.MethodGet {
			listings++
			_, _ = fmt.Fprintf(w, `[{"name":"released","vhost":"v","type":"quorum","leader":"node%d"}]`, min(listings, 2))
			return
		}
		var policy struct {
			Pattern string `json:"pattern"`
		}
		if err := json.NewDecoder(r.Body).Decode(&policy); err != nil {
			t.Error(err)
		}
		written = append(written, policy.Pattern)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	live, wanted := policyOf(1), policyOf(1)
	live.Pattern, wanted.Pattern = "^(own|released)$", "^own$"
	old := topology.Vhost{Version: topology.Version{Major: 3, Minor: 13}, Nodes: 3}
	change := Change{Vhost: "v", All: old, Live: topology.Topology{Policies: map[string]topology.Policy{"p": live}}}
	steps := []step{{do: put, policies: byName(map[string]topology.Policy{"p": wanted})}}
	require.NoError(t, applierOf(t, server.URL).execution(change).run(t.Context(), steps))
	if want := []string{wanted.Pattern, live.Pattern, wanted.Pattern}; !slices.Equal(written, want) {
		t.Errorf("written: %q instead of %q", written, want)
	}
}
