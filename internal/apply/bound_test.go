package apply

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Others bind all queues just before a certain step, whichever that is: those that are there by then stay, with these bindings,
// with the owner's and with the policies, and a later removal finishes. Only a binding that comes between a queue's last look
// and its deletion goes with it.
func TestQueuesThatOthersBindMeanwhileStay(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]struct {
		change func(*testing.T, *Applier, pipeline.Pipeline) error
		goes   []string
	}{
		"destroy": {func(t *testing.T, a *Applier, p pipeline.Pipeline) error {
			t.Helper()
			return a.Remove(t.Context(), noting(t, a, p, nil))
		}, []string{"declared", "orders.inbox", "orders.retry.1s", "orders.failed"}},
		"update": {func(t *testing.T, a *Applier, p pipeline.Pipeline) error {
			t.Helper()
			wanted := p
			wanted.WorkQueues, wanted.Delays = nil, []pipeline.Delay{{Wait: 2 * time.Second, Spelling: "2s"}}
			_, err := a.Update(t.Context(), noting(t, a, p, &wanted))
			return err
		}, []string{"declared", "orders.retry.1s"}},
		"rollback": {createRefused, []string{"declared", "orders.inbox", "orders.retry.1s", "orders.failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			for step := 1; bindAtStep(t, b, step, name == "rollback", scenario.goes, scenario.change); step++ {
			}
		})
	}
}

// createRefused is a creation that fails at its last policy, and is rolled back.
func createRefused(t *testing.T, a *Applier, p pipeline.Pipeline) error {
	t.Helper()
	c := noting(t, a, p, nil)
	c.Wanted, c.Identity = pipeline.Expand(p), pipeline.Identity(p)
	c.Wanted.Policies["refused"] = topology.Policy{Pattern: "^other$", ApplyTo: "queues", Definition: topology.Arguments{"nonsense": int64(1)}}
	return a.Create(t.Context(), c)
}

// bindAtStep makes a change, and binds its queues just before so many of its steps; false if it has fewer.
func bindAtStep(
	t *testing.T, b *brokertest.Broker, step int, creates bool, goes []string,
	change func(*testing.T, *Applier, pipeline.Pipeline) error,
) bool {
	t.Helper()
	direct, p := quickApplier(t, b, b.Endpoint), small(b)
	p.WorkQueues = map[string]pipeline.WorkQueue{"declared": {Type: topology.Quorum, Declare: true}}
	if !creates {
		require.NoError(t, create(t, direct, p))
	}
	var bound []topology.Binding
	at := ""
	endpoint := atStep(t, b, step, creates, func(r *http.Request) {
		at = r.Method + " " + r.URL.Path
		for _, queue := range goes {
			binding := topology.Binding{Source: "amq.topic", Destination: queue, RoutingKey: "of others", Arguments: topology.Arguments{"team": "b"}}
			if isDeletionOf(r, queue) {
				continue
			}
			switch err := direct.client.Bind(t.Context(), b.Vhost, binding); {
			case err == nil:
				bound = append(bound, binding)
			case !broker.IsNotFound(err): // the queue is gone
				t.Error(err)
			}
		}
	})
	err := change(t, quickApplier(t, b, endpoint), p)
	var refused *BoundError
	if errors.As(err, &refused) != (len(bound) > 0) {
		t.Errorf("%d, before %s: got %v", step, at, err)
	}
	var left *NotUndoneError
	if creates && len(bound) > 0 && !errors.As(err, &left) {
		t.Errorf("%d, before %s: nothing is said to be left: %v", step, at, err)
	}
	named := func(binding topology.Binding) bool { return strings.Contains(refused.Error(), binding.String()) }
	if refused != nil && !slices.ContainsFunc(bound, named) {
		t.Errorf("%d, before %s: the error names none of %v: %v", step, at, bound, err)
	}
	now := list(t, direct, b.Vhost)
	for _, binding := range bound {
		if !slices.ContainsFunc(now.Bindings, binding.Equal) {
			t.Errorf("%d, before %s: gone: %s", step, at, binding)
		}
		require.NoError(t, direct.client.Unbind(t.Context(), b.Vhost, binding))
	}
	if len(bound) > 0 && !creates {
		requirePutBack(t, at, bound, pipeline.Expand(p), now.Topology)
	}
	require.NoError(t, direct.ForceRemove(t.Context(), noting(t, direct, p, nil)))
	if left := list(t, direct, b.Vhost); len(left.Queues)+len(left.Policies) > 0 {
		t.Fatalf("%d, before %s: left: %v, %v", step, at, slices.Collect(maps.Keys(left.Queues)), left.Policies)
	}
	return at != ""
}

// requirePutBack fails the test if a queue that is bound lacks one of the bindings that the pipeline had made for it, or a policy
// is gone.
func requirePutBack(t *testing.T, at string, bound []topology.Binding, before, now topology.Topology) {
	t.Helper()
	for _, own := range before.Bindings {
		leadsThere := func(of topology.Binding) bool { return !own.ToExchange && of.Destination == own.Destination }
		if slices.ContainsFunc(bound, leadsThere) && !slices.ContainsFunc(now.Bindings, own.Equal) {
			t.Errorf("before %s: not bound again: %s", at, own)
		}
	}
	for name := range before.Policies {
		if _, has := now.Policies[name]; !has {
			t.Errorf("before %s: policy %s is gone", at, name)
		}
	}
}

func isDeletionOf(r *http.Request, queue string) bool {
	return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/api/queues/") && strings.HasSuffix(r.URL.Path, "/"+queue)
}

// atStep is the endpoint of a management API whose statistics say of every queue that it is empty. It calls this once, just
// before so many steps: writes, and looks at messages and at the bindings of queues. Those before a refused policy do not
// count if one is awaited.
func atStep(t *testing.T, b *brokertest.Broker, step int, afterRefusal bool, call func(*http.Request)) (endpoint string) {
	t.Helper()
	var mutex sync.Mutex
	steps, counting, looked := 0, !afterRefusal, false
	return b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		mutex.Lock()
		looks := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/bindings")
		if counting && (r.Method != http.MethodGet || looks && !looked) {
			if steps++; steps == step {
				call(r)
			}
		}
		looked = looks
		counting = counting || strings.HasSuffix(r.URL.Path, "/refused")
		mutex.Unlock()
		if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/api/queues/"+b.Vhost+"/") || strings.HasSuffix(r.URL.Path, "/bindings") {
			api.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		if api.ServeHTTP(answer, r); answer.Code == http.StatusOK {
			answer.Body = bytes.NewBuffer(withoutCounts(t, answer.Body.Bytes()))
		}
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	})
}

// A binding by which another pipeline's messages come back keeps a queue only as long as that one has any. It goes with the
// queue, and not before.
func TestReturnBindingsOfOthers(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p, other := declaring(t, b), pipeline.Names("other")
	var unbound atomic.Bool
	a := quickApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/other.return/") {
			unbound.Store(true)
		}
	}))
	b.Call(t, http.MethodPut, b.Path("exchanges", other.ReturnExchange()), map[string]any{"type": "direct"}, nil)
	b.DeclareQueue(t, "other.retry.1h", "quorum", map[string]any{"x-dead-letter-exchange": other.ReturnExchange()})
	returns := other.ReturnBinding("declared")
	require.NoError(t, a.client.Bind(t.Context(), b.Vhost, returns))
	b.Publish(t, "", "other.retry.1h", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("comes back")})
	brokertest.Eventually(t, func() error {
		if found, err := a.Contents(t.Context(), b.Vhost, []string{"other.retry.1h"}, nil); err != nil || len(found) == 0 {
			return fmt.Errorf("found: %v, %w", found, err)
		}
		return nil
	})
	err := a.Remove(t.Context(), noting(t, a, p, nil))
	var kept *KeptError
	if !errors.As(err, &kept) || kept.Queues["other.retry.1h"] == "" || !strings.Contains(bindings(t, a, b), returns.String()) {
		t.Fatalf("got %v", err)
	}
	b.Get(t, "other.retry.1h")
	if err := a.Remove(t.Context(), noting(t, a, p, nil)); err != nil || unbound.Load() {
		t.Fatalf("got %v, unbound: %t", err, unbound.Load())
	}
}

// An exchange of others that is bound to one of the owner's, before or during a proof, keeps all of them: what it routes would be
// dropped from then on, or for as long as a destroy takes that is refused.
func TestExchangesThatOthersBindStay(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]string{"before": "", "during the proof": http.MethodDelete} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			direct, p := quickApplier(t, b, b.Endpoint), small(b)
			require.NoError(t, create(t, direct, p))
			binding := topology.Binding{Source: "amq.fanout", Destination: "orders.dlx", ToExchange: true}
			bind := sync.OnceFunc(func() {
				if err := direct.client.Bind(t.Context(), b.Vhost, binding); err != nil {
					t.Error(err)
				}
			})
			if moment == "" {
				bind()
			}
			a := quickApplier(t, b, b.Before(t, func(r *http.Request) {
				if r.Method == moment {
					bind()
				}
			}))
			before := list(t, direct, b.Vhost)
			var refused *BoundError
			if err := a.Remove(t.Context(), noting(t, a, p, nil)); !errors.As(err, &refused) || !strings.Contains(refused.Error(), binding.String()) {
				t.Fatalf("got %v", err)
			}
			bind()
			before.Bindings = append(before.Bindings, binding)
			now := list(t, direct, b.Vhost)
			for _, was := range before.Bindings {
				if !slices.ContainsFunc(now.Bindings, was.Equal) {
					t.Errorf("gone: %s", was)
				}
			}
			require.NoError(t, direct.client.Unbind(t.Context(), b.Vhost, binding))
			require.NoError(t, direct.Remove(t.Context(), noting(t, direct, p, nil)))
		})
	}
}
