package apply

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A queue whose consumers reject all the time has dead letters on their way at most looks. What is
// held for good is in every look, and only that is refused.
func TestDeadLettersThatPassAreNoReasonToRefuse(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]func(looks int32) int{
		"passing": func(looks int32) int { return int(looks % 3) },
		"staying": func(int32) int { return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var looks atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{"name":"work","vhost":"/","type":"quorum","state":"running","messages":0,"messages_dlx":%d}`, held(looks.Add(1)))
			}))
			t.Cleanup(server.Close)
			c := applierOf(t, server.URL)
			err := c.execution(Change{Vhost: "/"}).run(t.Context(), []step{
				{do: proveNonePending, ifFails: refuse, checks: checksOf(pendingDeadLetters, "work")},
			})
			var kept *KeptError
			if refused := errors.As(err, &kept); refused != (name == "staying") || (err != nil && !refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What was published and consumed a moment before may be reported after a report that the queue is
// empty. The change begins again instead of refusing what the user has already seen to.
func TestLateReportOfWhatIsGoneIsNoReasonToRefuse(t *testing.T) {
	t.Parallel()
	var looks atomic.Int32
	var deleted atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted.Store(true)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if r.Method == http.MethodPost || strings.HasSuffix(r.URL.Path, "/bindings") { // what is in the queue, or leads to it
			_, _ = fmt.Fprint(w, "[]")
			return
		}
		messages := 0
		if looks.Add(1) == 2 {
			messages = 1
		}
		_, _ = fmt.Fprintf(w, `{"name":"paid","vhost":"/","type":"quorum","state":"running","messages":%d,"messages_dlx":0,"consumers":0}`, messages)
	}))
	t.Cleanup(server.Close)
	c := applierOf(t, server.URL)
	change := Change{Vhost: "/"}
	steps := []step{change.removeIfEmpty(map[string]topology.Queue{"paid": {Type: topology.Quorum}}, refuse)}
	err := c.execution(change).run(t.Context(), steps)
	if err != nil || !deleted.Load() {
		t.Errorf("got %v, deleted: %v", err, deleted.Load())
	}
}

// What had no consumer at one look and is gone at the next does not keep the rest of the change from waiting.
func TestWhatIsGoneIsNotStuck(t *testing.T) {
	t.Parallel()
	var looks atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		messages := 0
		if looks.Add(1) == 1 {
			messages = 1
		}
		_, _ = fmt.Fprintf(w, `{"name":"paid","vhost":"/","type":"quorum","state":"running","messages":%d,"messages_dlx":0,"consumers":0}`, messages)
	}))
	t.Cleanup(server.Close)
	e := applierOf(t, server.URL).execution(Change{Vhost: "/"})
	found, err := e.lastingContents(t.Context(), checksOf(use, "paid"))
	if err != nil || len(found) > 0 || len(e.stuckSince) > 0 {
		t.Errorf("found %v, stuck %v, %v", found, e.stuckSince, err)
	}
}
