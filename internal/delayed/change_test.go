package delayed_test

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestBindingsOfOthers(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "5s", "1s")
	n, vhost := e.Names(), delayed.Expand(e)
	due := topology.Binding{Source: "events.deliver", Destination: "mails", RoutingKey: "mail.#"}
	unbound := topology.Binding{Source: "events.deliver", Destination: "logs", RoutingKey: "#"}
	into := topology.Binding{Source: "app", Destination: "events", ToExchange: true}
	tap := topology.Binding{Source: "events", Destination: "mails"}
	vhost.Bindings = append(vhost.Bindings, due, n.NoteOf(unbound, "events.deliver"), into, tap,
		topology.Binding{Destination: "events.delay.inbox", RoutingKey: "events.delay.inbox"}, topology.Binding{Source: "app", Destination: "mails"})
	assertBindings(t, n.Foreign("events.deliver", vhost), unbound, due)
	assertBindings(t, n.Foreign("events", vhost), tap)
	assertBindings(t, delayed.BindingsThatGo(e, vhost), into, tap)
}

func assertBindings(t *testing.T, got []topology.Binding, want ...topology.Binding) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v instead of %v", got, want)
	}
	for i := range want {
		if !got[i].Equal(want[i]) {
			t.Errorf("got %v instead of %v", got[i], want[i])
		}
	}
}

// A note outlives the exchange that is re-created, and leads nowhere else.
func TestNotes(t *testing.T) {
	t.Parallel()
	n := delayed.Names("events")
	noted := topology.Binding{Source: "events.deliver", Destination: "mails", RoutingKey: "mail.#"}
	for _, going := range []string{"events", "events.deliver", "events.delay.unrouted", ""} {
		note := n.NoteOf(noted, going)
		if note.Source != note.Destination || note.Source == going || !n.OwnsBinding(note) {
			t.Errorf("going %q: %v", going, note)
		}
		if read, is := n.Noted(note); !is || !read.Equal(noted) {
			t.Errorf("going %q: read as %v", going, read)
		}
	}
	garbled := n.NoteOf(noted, "")
	garbled.RoutingKey = "unbound:other"
	if found := n.GarbledNotes(topology.Topology{Bindings: []topology.Binding{garbled, n.NoteOf(noted, "")}}); len(found) != 1 {
		t.Errorf("garbled: %v", found)
	}
}

func TestInterruptedCreation(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "5s", "1s")
	left := delayed.Identity(e)
	left.Bindings, left.Policies = nil, delayed.Guard(e)
	if !delayed.InterruptedCreation(e, left) {
		t.Error("what an interruption leaves is not known")
	}
	if delayed.InterruptedCreation(e, topology.New()) || delayed.InterruptedCreation(e, delayed.Expand(e)) {
		t.Error("nothing, or a whole one, is taken for an interruption")
	}
	left.Bindings = []topology.Binding{{Source: "app", Destination: "events.delay.unrouted"}}
	if delayed.InterruptedCreation(e, left) {
		t.Error("what others use is taken over")
	}
}

func TestAfterApply(t *testing.T) {
	t.Parallel()
	prior, next := exchange(t, "events", "5s", "1s"), exchange(t, "events", "1s", "1s")
	live := delayed.Expand(prior)
	live.Queues["mails"] = topology.Queue{Type: topology.Classic}
	planned := delayed.AfterApply(next, &prior, topology.Vhost{Topology: live})
	want := delayed.Expand(next)
	want.Queues["mails"] = live.Queues["mails"]
	if changes := topology.Diff(want, planned.Topology); !changes.Empty() {
		t.Errorf("planned otherwise: %v", changes)
	}
}
