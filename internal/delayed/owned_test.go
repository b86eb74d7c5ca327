package delayed_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Owned finds the expanded objects, in a vhost with a pipeline of the same name and delayed exchanges with similar
// names.
func TestOwnedIsWhatWasExpanded(t *testing.T) {
	t.Parallel()
	all := []delayed.Exchange{
		exchange(t, "events", "1h", "100ms"), exchange(t, "events.delay", "1h", "100ms"), exchange(t, "events.delay.100ms", "1h", "1s"),
		exchange(t, "event", "10s", "3s"),
	}
	p := pipeline.Pipeline{
		Name: "events", QueueType: topology.Quorum, MaxAttempts: 2, RetryOn: []string{pipeline.ReasonRejected},
		Delays: []pipeline.Delay{delay(t, "5s")}, PolicyPriority: pipeline.DefaultPolicyPriority,
	}
	vhost := p.Expand()
	for _, e := range all {
		vhost = together(vhost, e.Expand())
	}
	for _, e := range all {
		requireSame(t, e.Expand(), e.Owned(vhost))
	}
	requireSame(t, p.Expand(), p.Owned(vhost))
	require.Equal(t, []string{"event", "events", "events.delay", "events.delay.100ms"}, delayed.Found(vhost))
}

// Levels that left the specification are found by their properties, and similar objects of others are left alone.
func TestOwnedFindsRetiredLevels(t *testing.T) {
	t.Parallel()
	before, after := exchange(t, "events", "1h", "100ms"), exchange(t, "events", "5s", "2s")
	vhost := together(before.Expand(), after.Expand())
	foreign := "events.delay.7s.0"
	vhost.Queues[foreign], vhost.Exchanges[foreign] = topology.Queue{Type: topology.Quorum}, topology.Exchange{Type: "fanout"}
	owned := after.Owned(vhost)
	require.NotContains(t, owned.Queues, foreign, "a queue of others is owned")
	require.NotContains(t, owned.Exchanges, foreign, "an exchange of others is owned")
	retired := slices.DeleteFunc(after.Names().LevelsIn(owned), after.Uses)
	require.Equal(t, before.Levels(), retired)
}

func TestRecover(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "720h", "1000ms")
	e.Type, e.PolicyPriority = "headers", 7
	got, err := delayed.Recover("events", "/", e.Expand())
	require.NoError(t, err)
	if changes := topology.Diff(e.Expand(), got.Expand()); !changes.Empty() || got.MaxDelay != e.MaxDelay || got.Precision != e.Precision {
		t.Errorf("got %+v", got)
	}
	_, err = delayed.Recover("other", "/", e.Expand())
	require.Error(t, err, "another one is recovered")
}

func TestParseDefinitionRefusesWhatNoReleaseWrites(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{`, `{}`, `{"version":2}`, `{"version":1,"type":"topic","max_delay":"1s","precision":"1s","more":1}`,
		`{"version":1,"type":"x-delayed-message","max_delay":"1s","precision":"1s"}`,
		`{"version":1,"type":"topic","max_delay":"1","precision":"1s"}`, `{"version":1,"type":"topic","max_delay":"1s","precision":"1y"}`,
		`{"version":1,"type":"topic","max_delay":"1s","precision":"0s"}`, `{"version":1,"type":"topic","max_delay":"1s","precision":"2s"}`,
	} {
		_, err := delayed.Names("").DefinitionPlace().Parse(text)
		require.Error(t, err, text)
	}
	_, err := delayed.Names("").DefinitionPlace().Parse(`{"version":1,"type":"topic","max_delay":"1s","precision":"1s"}`)
	require.NoError(t, err)
}

func TestBindingsOfOthers(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "5s", "1s")
	n, vhost := e.Names(), e.Expand()
	due := topology.Binding{Source: "events.deliver", Destination: "mails", RoutingKey: "mail.#"}
	unbound := topology.Binding{Source: "events.deliver", Destination: "logs", RoutingKey: "#"}
	into := topology.Binding{Source: "app", Destination: "events", ToExchange: true}
	tap := topology.Binding{Source: "events", Destination: "mails"}
	vhost.Bindings = append(vhost.Bindings, due, n.Notes().Of(unbound, "events.deliver"), into, tap,
		topology.Binding{Destination: "events.delay.inbox", RoutingKey: "events.delay.inbox"}, topology.Binding{Source: "app", Destination: "mails"})
	require.Empty(t, cmp.Diff([]topology.Binding{unbound, due}, n.Foreign("events.deliver", vhost)))
	require.Empty(t, cmp.Diff([]topology.Binding{tap}, n.Foreign("events", vhost)))
	require.Empty(t, cmp.Diff([]topology.Binding{into, tap}, e.Effects(nil, vhost).Bindings))
}

// A note survives the exchange that is re-created, and routes to no other object.
func TestNotes(t *testing.T) {
	t.Parallel()
	n := delayed.Names("events")
	noted := topology.Binding{Source: "events.deliver", Destination: "mails", RoutingKey: "mail.#"}
	for _, going := range []string{"events", "events.deliver", "events.delay.unrouted", ""} {
		note := n.Notes().Of(noted, going)
		if note.Source != note.Destination || note.Source == going || !n.OwnsBinding(note) {
			t.Errorf("going %q: %v", going, note)
		}
		if read, is := n.Notes().Noted(note); !is || !read.Equal(noted) {
			t.Errorf("going %q: read as %v", going, read)
		}
	}
	garbled := n.Notes().Of(noted, "")
	garbled.RoutingKey = "unbound:other"
	require.Len(t, n.Notes().Garbled(topology.Topology{Bindings: []topology.Binding{garbled, n.Notes().Of(noted, "")}}, n.OwnsExchange), 1, "garbled")
}

func TestInterruptedCreation(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "5s", "1s")
	left := e.Identity()
	left.Bindings, left.Policies = nil, e.Guard()
	require.True(t, e.InterruptedCreation(left), "what an interruption leaves is not known")
	if e.InterruptedCreation(topology.New()) || e.InterruptedCreation(e.Expand()) {
		t.Error("nothing, or a whole one, is taken for an interruption")
	}
	left.Bindings = []topology.Binding{{Source: "app", Destination: "events.delay.unrouted"}}
	require.False(t, e.InterruptedCreation(left), "what others use is taken over")
}

func TestAfterApply(t *testing.T) {
	t.Parallel()
	prior, next := exchange(t, "events", "5s", "1s"), exchange(t, "events", "1s", "1s")
	live := prior.Expand()
	live.Queues["mails"] = topology.Queue{Type: topology.Classic}
	planned := next.AfterApply(&prior, topology.Vhost{Topology: live})
	want := next.Expand()
	want.Queues["mails"] = live.Queues["mails"]
	requireSame(t, want, planned.Topology)
}
