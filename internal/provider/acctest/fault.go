package acctest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Fault is what happens to a write and to its answer.
type Fault string

// All faults. A late write takes effect after its request has failed.
const (
	Refused    Fault = "refused"
	NotArrived Fault = "not arrived"
	AnswerLost Fault = "answer lost"
	Late       Fault = "late"
)

// AtEachFault counts the writes of a scenario, and then has each of them meet a fault, one after the other of all faults. The scenario
// gets the number of the write, 0 for none, and the fault. It returns the count of [Core.Meeting].
func AtEachFault(t *testing.T, scenario func(t *testing.T, write int, fault Fault) (writes int)) {
	t.Helper()
	Require(t)
	all := scenario(t, 0, "")
	require.NotZero(t, all)
	for at := range all {
		fault := []Fault{Refused, NotArrived, AnswerLost, Late}[at%4]
		t.Run(fmt.Sprintf("write %d of %d %s", at+1, all, fault), func(t *testing.T) {
			t.Parallel()
			require.Greater(t, scenario(t, at+1, fault), at)
		})
	}
}

// Meeting acts as Terraform does, and lets the write with this number, counted from 1, meet a fault. It returns the number of writes.
func (c *Core) Meeting(t *testing.T, b *brokertest.Broker, at int, fault Fault, do func(*Core) error) (writes int, err error) {
	t.Helper()
	var mutex sync.Mutex
	var all sync.WaitGroup
	met := *c
	met.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		mutex.Lock()
		hit := changes(r, api)
		if hit {
			writes++
			hit = writes == at
		}
		mutex.Unlock()
		switch {
		case !hit:
			api.ServeHTTP(w, r)
		case fault == Refused:
			http.Error(w, `{"error":"not_authorised","reason":"Access refused."}`, http.StatusUnauthorized)
		case fault == Late:
			body, _ := io.ReadAll(r.Body)
			late := r.Clone(context.WithoutCancel(r.Context()))
			late.Body = io.NopCloser(bytes.NewReader(body))
			all.Add(1)
			time.AfterFunc(500*time.Millisecond, func() {
				api.ServeHTTP(httptest.NewRecorder(), late)
				all.Done()
			})
			w.WriteHeader(http.StatusServiceUnavailable)
		case fault == AnswerLost:
			api.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	err = do(&met)
	all.Wait()
	met.Endpoint = c.Endpoint
	*c = met
	mutex.Lock()
	defer mutex.Unlock()
	return writes, err
}

// changes reports whether a request changes something. To declare an object that exists changes nothing.
func changes(r *http.Request, api http.Handler) bool {
	kind := strings.Split(r.URL.Path, "/")[2]
	switch {
	case r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/get"):
		return false
	case r.Method == http.MethodDelete || !slices.Contains([]string{"queues", "exchanges", "bindings"}, kind):
		return true
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	look, answer := r.Clone(r.Context()), httptest.NewRecorder()
	look.Method, look.Body, look.ContentLength = http.MethodGet, http.NoBody, 0
	look.Header.Del("Accept-Encoding")
	api.ServeHTTP(answer, look)
	if kind != "bindings" {
		return answer.Code != http.StatusOK
	}
	type binding struct {
		RoutingKey string         `json:"routing_key"`
		Arguments  map[string]any `json:"arguments"`
	}
	var wanted binding
	var live []binding
	_, _ = json.Unmarshal(body, &wanted), json.Unmarshal(answer.Body.Bytes(), &live)
	return !slices.ContainsFunc(live, func(b binding) bool {
		return b.RoutingKey == wanted.RoutingKey && fmt.Sprint(b.Arguments) == fmt.Sprint(wanted.Arguments)
	})
}
