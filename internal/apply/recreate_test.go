package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// recreating is an owner of objects that are re-created with all their bindings.
var recreating = stored.Owner{Notes: stored.Notes{"amq.direct"}, RestoresBindings: true}

// recreation declares an exchange and two queues with bindings, and returns a change of all three.
func recreation(t *testing.T, b *brokertest.Broker, a *Applier) func() Change {
	t.Helper()
	bound := []topology.Binding{
		{Source: "amq.topic", Destination: "first", RoutingKey: "key"},
		{Source: "events", Destination: "second"},
		{Source: "amq.topic", Destination: "events", ToExchange: true, RoutingKey: "key"},
	}
	b.DeclareQueue(t, "first", "classic", nil)
	b.DeclareQueue(t, "second", "quorum", nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "events"), map[string]any{"type": "fanout"}, nil)
	for _, binding := range bound {
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, binding))
	}
	return func() Change {
		for _, queue := range []string{"first", "second"} {
			awaitStatistics(t, a, b.Vhost, queue)
		}
		c := Change{
			Owner: recreating, Vhost: b.Vhost, All: list(t, a, b.Vhost), Live: topology.New(), Wanted: topology.New(),
			SharedQueues: []string{"first", "second"},
		}
		c.Wanted.Exchanges["events"], c.Live.Exchanges["events"] = topology.Exchange{Type: "topic"}, c.All.Exchanges["events"]
		for _, name := range c.SharedQueues {
			queue := c.All.Queues[name]
			c.Live.Queues[name] = queue
			queue.Arguments = topology.Arguments{"x-max-length": int64(5)}
			c.Wanted.Queues[name] = queue
		}
		return c
	}
}

// awaitStatistics waits until the broker counts the messages of a new queue.
func awaitStatistics(t *testing.T, a *Applier, vhost, queue string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		info, err := a.client.Queue(t.Context(), vhost, queue)
		if err == nil && info.Messages == nil {
			return errors.New("the queue has no statistics yet")
		}
		return err
	})
}

// requireAsItWasOrWanted fails if an object or a binding is missing, or if a trial or a note is left.
func requireAsItWasOrWanted(t *testing.T, a *Applier, c Change) {
	t.Helper()
	now := list(t, a, c.Vhost)
	for name, queue := range c.Wanted.Queues {
		require.True(t, queue.Equal(now.Queues[name]) || c.Live.Queues[name].Equal(now.Queues[name]), "queue %s: %v", name, now.Queues[name])
	}
	exchange := now.Exchanges["events"]
	require.True(t, exchange.Equal(c.Wanted.Exchanges["events"]) || exchange.Equal(c.Live.Exchanges["events"]), "exchange: %v", exchange)
	require.Len(t, now.Queues, len(c.All.Queues))
	require.Len(t, now.Exchanges, len(c.All.Exchanges))
	require.ElementsMatch(t, texts(c.All.Bindings), texts(now.Bindings))
}

func texts(bindings []topology.Binding) []string {
	var all []string
	for _, b := range bindings {
		all = append(all, b.String())
	}
	return all
}

// What is re-created has its old or its new properties, and all bindings, whatever happens to one of the requests.
func TestRecreationLeavesEachObject(t *testing.T) {
	t.Parallel()
	isWrite := func(r *http.Request) bool {
		return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/get")
	}
	for _, fault := range []string{"refused", "not answered", "answer lost", "cancelled"} {
		for at := 1; at <= 33; at++ {
			t.Run(fmt.Sprintf("%s, write %d", fault, at), func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				a := newApplier(t, b, b.Endpoint)
				of := recreation(t, b, a)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var writes atomic.Int32
				through := withoutLag(newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
					switch hit := isWrite(r) && writes.Add(1) == int32(at); {
					case !hit:
						api.ServeHTTP(w, r)
					case fault == "refused":
						http.Error(w, `{"error":"not_authorised","reason":"Access refused."}`, http.StatusUnauthorized)
					case fault == "not answered":
						w.WriteHeader(http.StatusServiceUnavailable)
					case fault == "answer lost":
						api.ServeHTTP(httptest.NewRecorder(), r)
						w.WriteHeader(http.StatusServiceUnavailable)
					default:
						cancel()
						api.ServeHTTP(w, r)
					}
				})))
				before := of()
				_, err := through.Update(ctx, before)
				if writes.Load() < int32(at) {
					require.NoError(t, err)
					t.Skipf("the change has fewer than %d writes", at) //nolint:forbidigo // not of the broker
				}
				requireAsItWasOrWanted(t, a, before)
				if err != nil {
					again := withoutLag(newApplier(t, b, b.Endpoint))
					again.times.Report = DefaultTimes().Report // a queue that was just re-created has no counts yet
					_, err = again.Update(t.Context(), of())
				}
				require.NoError(t, err)
				require.True(t, topology.Diff(of().Wanted, of().Live).Empty())
			})
		}
	}
}

// The broker can refuse a new object that a trial could not show.
func TestRecreationThatIsRefusedPutsBackTheOldObject(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a := newApplier(t, b, b.Endpoint)
	of := recreation(t, b, a)
	through := withoutLag(newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		content, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(content))
		if r.Method == http.MethodPut && !strings.HasSuffix(r.URL.Path, trialSuffix) && strings.ContainsAny(string(content), "5p") &&
			(strings.Contains(string(content), "x-max-length") || strings.Contains(string(content), "topic")) {
			http.Error(w, `{"error":"bad_request","reason":"not today"}`, http.StatusBadRequest)
			return
		}
		api.ServeHTTP(w, r)
	})))
	before := of()
	_, err := through.Update(t.Context(), before)
	require.ErrorContains(t, err, "not today")
	requireAsItWasOrWanted(t, a, before)
	exchange := before
	exchange.Wanted.Queues, exchange.Live.Queues = nil, nil
	_, err = through.Update(t.Context(), exchange)
	require.ErrorContains(t, err, "not today")
	requireAsItWasOrWanted(t, a, before)
}

// Who lacks a right learns of all that is missing before a policy leads messages to the new objects.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	b.Call(t, http.MethodPut, b.Path("exchanges", "return"), map[string]any{"type": "direct", "durable": true}, nil)
	var written atomic.Bool
	endpoint := b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if strings.Contains(r.URL.Path, "/policies/") {
			written.Store(true)
		}
		api.ServeHTTP(w, r)
	})
	admin := newApplier(t, b, b.Endpoint)
	create := func(write, read string) error {
		user, password := b.User(t, "policymaker", ".*", write, read)
		c := Change{Vhost: b.Vhost, All: list(t, admin, b.Vhost), Live: topology.New(), Wanted: topology.New()}
		c.Wanted.Policies["p"] = atLeastOnce("^work$")
		c.Wanted.Queues["failed"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-exchange": ""}}
		c.Wanted.Bindings = []topology.Binding{
			{Source: "return", Destination: "work", RoutingKey: "a"}, {Source: "return", Destination: "failed", RoutingKey: "b"},
		}
		return withoutLag(applierAs(t, endpoint, user, password)).Create(t.Context(), c)
	}
	err := create("^$", "^$")
	for _, missing := range []string{
		`read on "failed" and write on "amq.default"`, `read on "return" and write on "work"`, `read on "return" and write on "failed"`,
	} {
		require.ErrorContains(t, err, missing)
	}
	err = create("^(work|amq.default)$", ".*")
	require.ErrorContains(t, err, `read on "return" and write on "failed"`)
	require.False(t, written.Load())
	now := list(t, admin, b.Vhost)
	require.NotContains(t, now.Queues, "failed")
	require.NoError(t, create(".*", ".*"))
	require.True(t, written.Load())
	var keys []string
	for _, binding := range list(t, admin, b.Vhost).Bindings {
		if binding.Source != "" {
			keys = append(keys, binding.RoutingKey)
		}
	}
	require.ElementsMatch(t, []string{"a", "b"}, keys)
}

// A trial shows what the broker refuses before anything is deleted. The error names the object itself, and what the user lacks.
func TestTrial(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	admin := newApplier(t, b, b.Endpoint)
	of := recreation(t, b, admin)
	b.Call(t, http.MethodPut, b.Path("exchanges", "unrouted"), map[string]any{"type": "fanout"}, nil)
	b.DeclareQueue(t, "first"+trialSuffix, "classic", nil) // an apply that was killed has left it
	user, password := b.User(t, "management", ".*", "^(first|second|events|amq[.].*)", ".*")
	a := withoutLag(applierAs(t, b.Endpoint, user, password))
	refused := func(alter func(*Change), want ...string) {
		t.Helper()
		c := of()
		alter(&c)
		before := list(t, admin, b.Vhost)
		_, err := a.Update(t.Context(), c)
		for _, text := range want {
			require.ErrorContains(t, err, text)
		}
		now := list(t, admin, b.Vhost)
		delete(before.Queues, "first"+trialSuffix)
		before.Bindings = slices.DeleteFunc(before.Bindings, func(b topology.Binding) bool { return b.Destination == "first"+trialSuffix })
		require.True(t, topology.Diff(before.Topology, now.Topology).Empty(), "%v", topology.Diff(before.Topology, now.Topology))
	}
	queue := func(name, argument string, value any) func(*Change) {
		return func(c *Change) { c.Wanted.Queues[name].Arguments[argument] = value }
	}
	refused(queue("first", "x-overflow", "reject_publish"), `invalid arg 'x-overflow' for queue 'first' in vhost`)
	refused(queue("second", "x-dead-letter-exchange", "unrouted"), `read on "second" and write on "unrouted"`)
	refused(func(c *Change) {
		c.Wanted.Exchanges["events"] = topology.Exchange{Type: "topic", Arguments: topology.Arguments{"alternate-exchange": "unrouted"}}
	}, `read on "events" and write on "unrouted"`)

	// An object that names no exchange needs no trial. One that names an exchange does, since the old one can need more permissions
	// than its deletion.
	user, password = b.User(t, "management", "^(first|second|events|amq[.].*)$", ".*", ".*")
	a = withoutLag(applierAs(t, b.Endpoint, user, password))
	b.Call(t, http.MethodDelete, b.Path("exchanges", "events"), nil, nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "events"),
		map[string]any{"type": "fanout", "arguments": map[string]any{"alternate-exchange": "unrouted"}}, nil)
	refused(func(*Change) {}, "configure and read on", `"events`+`.retry-trial"`)
	b.Call(t, http.MethodDelete, b.Path("exchanges", "events"), nil, nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "events"), map[string]any{"type": "fanout"}, nil)

	// At a limit, neither the new nor the old object could be created.
	b.Call(t, http.MethodPut, b.Path("vhost-limits", "max-queues"), map[string]any{"value": 1}, nil)
	a = withoutLag(admin)
	refused(func(*Change) {}, "queue limit in vhost")
	b.Call(t, http.MethodDelete, b.Path("vhost-limits", "max-queues"), nil, nil)

	// A binding that the new type refuses.
	odd := topology.Binding{Source: "events", Destination: "first", Arguments: topology.Arguments{"x-match": "some"}}
	require.NoError(t, admin.client.Bind(t.Context(), b.Vhost, odd))
	refused(func(c *Change) { c.Wanted.Exchanges["events"] = topology.Exchange{Type: "headers"} }, "the new type cannot have the binding")
	require.NoError(t, admin.client.Unbind(t.Context(), b.Vhost, odd))

	// An exchange that deletes itself without the queue, and a binding that cannot be restored exactly.
	b.Call(t, http.MethodPut, b.Path("exchanges", "fleeting"), map[string]any{"type": "fanout", "auto_delete": true}, nil)
	fleeting := topology.Binding{Source: "fleeting", Destination: "first"}
	require.NoError(t, admin.client.Bind(t.Context(), b.Vhost, fleeting))
	refused(func(*Change) {}, `the only target of the auto-delete exchange "fleeting"`)
	require.NoError(t, admin.client.Unbind(t.Context(), b.Vhost, fleeting))
	inexact := topology.Binding{Source: "amq.headers", Destination: "first", Arguments: topology.Arguments{"list": []any{int64(1)}}}
	require.NoError(t, admin.client.Bind(t.Context(), b.Vhost, inexact))
	refused(func(*Change) {}, "cannot be restored")
	require.NoError(t, admin.client.Unbind(t.Context(), b.Vhost, inexact))

	user, password = b.User(t, "management", "^(first|second|events|amq[.].*)$", ".*", ".*")
	_, err := withoutLag(applierAs(t, b.Endpoint, user, password)).Update(t.Context(), of())
	require.NoError(t, err)
}

// What is unbound while a queue or an exchange is re-created stays away.
func TestRecreationRestoresNoBindingThatWasDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a := newApplier(t, b, b.Endpoint)
	of := recreation(t, b, a)
	change := of()
	for _, binding := range change.All.Bindings {
		if binding.RoutingKey == "key" {
			require.NoError(t, a.client.Unbind(t.Context(), b.Vhost, binding))
		}
	}
	held, deleted := make(chan struct{}), make(chan error, 1)
	go func() {
		<-held
		binding := topology.Binding{Source: "events", Destination: "second"}
		defer a.Hold(b.Vhost, binding)()
		deleted <- a.client.Unbind(t.Context(), b.Vhost, binding)
	}()
	through := withoutLag(newApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/queues/"+b.Vhost+"/second") {
			close(held) // the queue is unbound now
		}
	})))
	through.ends = a.ends
	_, err := through.Update(t.Context(), change)
	require.NoError(t, err)
	require.NoError(t, <-deleted)
	require.NotContains(t, strings.Join(texts(list(t, a, b.Vhost).Bindings), "\n"), "key")
	require.NotContains(t, texts(list(t, a, b.Vhost).Bindings), "events -> second")
}

// While a queue is unbound, nothing deletes the exchange of one of its bindings.
func TestRecreationHoldsTheExchangesOfItsBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a := newApplier(t, b, b.Endpoint)
	change := recreation(t, b, a)()
	unbound, found := make(chan struct{}), make(chan []topology.Binding, 1)
	go func() {
		<-unbound
		defer a.HoldExchange(b.Vhost, "amq.topic")()
		bound, _ := a.client.BindingsFrom(context.WithoutCancel(t.Context()), b.Vhost, "amq.topic")
		found <- bound
	}()
	through := withoutLag(newApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/queues/"+b.Vhost+"/first") {
			close(unbound)
		}
	})))
	through.ends = a.ends
	_, err := through.Update(t.Context(), change)
	require.NoError(t, err)
	require.Contains(t, texts(<-found), "amq.topic -> first [key]")
}
