package apply

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Of queues between which messages pass, one that is not empty keeps all, bound as they were, and the exchanges that lead to
// them. It may show only in the middle of the proof.
func TestQueuesGoTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		messages func(looks int) int
		goes     bool
	}{
		"all empty":            {func(int) int { return 0 }, true},
		"not empty":            {func(int) int { return 1 }, false},
		"not empty afterwards": {func(looks int) int { return min(1, looks/3) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls api
			calls.messages = test.messages
			server := httptest.NewServer(&calls)
			t.Cleanup(server.Close)
			live := topology.Topology{
				Exchanges: map[string]topology.Exchange{"high": {Type: "fanout"}, "low": {Type: "fanout"}},
				Queues:    map[string]topology.Queue{"high": quorum("low"), "low": quorum("due")},
				Bindings: []topology.Binding{
					binding("high", "high"), binding("low", "low"), {Source: "high", Destination: "low", ToExchange: true},
				},
			}
			for i := range live.Bindings {
				live.Bindings[i].PropertiesKey = "~"
			}
			c := Change{Vhost: "v", All: topology.Vhost{Topology: live}, Live: live, Wanted: topology.New(), Together: true}
			kept, err := applierOf(t, server.URL).Update(t.Context(), c)
			require.NoError(t, err)
			if test.goes {
				want := []string{"exchanges/v/high", "exchanges/v/low", "queues/v/high", "queues/v/low"}
				if gone := calls.deleted(); !slices.Equal(gone, want) || len(kept) > 0 {
					t.Errorf("deleted %q, kept %q", gone, kept)
				}
				return
			}
			if gone := calls.deleted(); len(gone) > 0 || len(kept) != 2 {
				t.Errorf("deleted %q, kept %q", gone, kept)
			}
			if calls.bound < calls.unbound || calls.unbound == 0 && name != "not empty" {
				t.Errorf("%d bindings were removed and %d made", calls.unbound, calls.bound)
			}
		})
	}
}

// api is a management API with two queues, of which the high one may have messages.
type api struct {
	messages func(looks int) int

	mutex          sync.Mutex
	looks          int
	bound, unbound int
	gone           []string
}

func (a *api) deleted() []string {
	slices.Sort(a.gone)
	return a.gone
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/")
	isBinding := strings.HasPrefix(path, "bindings/")
	switch {
	case r.Method == http.MethodGet && path == "queues/v/high":
		_, _ = fmt.Fprintf(w, `{"name":"high","vhost":"v","type":"quorum","state":"running","messages":%d,"messages_dlx":0}`, a.messages(a.looks))
		a.looks++
	case r.Method == http.MethodGet && strings.Contains(path, "/bindings"):
		_, _ = fmt.Fprint(w, "[]")
	case r.Method == http.MethodGet:
		_, _ = fmt.Fprint(w, `{"name":"low","vhost":"v","type":"quorum","state":"running","messages":0,"messages_dlx":0}`)
	case r.Method == http.MethodPost && isBinding:
		a.bound++
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPost:
		_, _ = fmt.Fprint(w, "[]")
	case r.Method == http.MethodDelete && isBinding:
		a.unbound++
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		a.gone = append(a.gone, path)
		w.WriteHeader(http.StatusNoContent)
	}
}
