package pipeline

import (
	"maps"
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestNotesSayWhatWasUnbound(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	for _, engine := range Engines() {
		p, seen := Pipeline{Name: "orders", Engine: engine}, map[string]bool{}
		for _, b := range []topology.Binding{
			{Source: "shop", Destination: "orders.created"},
			{Source: "shop", Destination: "orders.created", RoutingKey: "order.*"},
			{Source: "shop", Destination: "orders.created", Arguments: topology.Arguments{"x-match": "all", "weight": int64(3)}},
			{Source: "orders.failed", Destination: "orders.created", ToExchange: true},
			{Source: "shop\"é", Destination: "a b", RoutingKey: "#", Arguments: topology.Arguments{"list": []any{int64(1), "two"}}},
		} {
			for _, going := range append(slices.Collect(maps.Keys(ExpandExchanges(p))), "") {
				note := n.NoteOf(b, going)
				if noted, isNote := n.Noted(note); !isNote || !noted.Equal(b) {
					t.Errorf("%s: %s became %s, %t", engine, b, noted, isNote)
				}
				if !n.OwnsBinding(note) || Names("other").OwnsBinding(note) {
					t.Errorf("%s: whose is %s?", engine, note)
				}
				if note.Source == going || note.Destination == going {
					t.Errorf("%s: %s goes with %s", engine, note, going)
				}
			}
			note := n.NoteOf(b, "")
			if seen[note.RoutingKey] {
				t.Errorf("%s has the key of another note", note)
			}
			seen[note.RoutingKey] = true
		}
	}
}

func TestWhatIsNoNote(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	genuine := n.NoteOf(topology.Binding{Source: "shop", Destination: "orders.created"}, "")
	for name, change := range map[string]func(*topology.Binding){
		"garbage":        func(b *topology.Binding) { b.Arguments = topology.Arguments{stored.UnboundArgument: "{"} },
		"no source":      func(b *topology.Binding) { b.Arguments = topology.Arguments{stored.UnboundArgument: `{"queue":"q"}`} },
		"a number":       func(b *topology.Binding) { b.Arguments = topology.Arguments{stored.UnboundArgument: int64(1)} },
		"no argument":    func(b *topology.Binding) { b.Arguments = nil },
		"another source": func(b *topology.Binding) { b.Source = "orders.dlx" },
		"to a queue":     func(b *topology.Binding) { b.ToExchange = false },
		"two ends": func(b *topology.Binding) {
			b.Arguments = topology.Arguments{stored.UnboundArgument: `{"source":"s","queue":"q","exchange":"e"}`}
		},
		"another destination": func(b *topology.Binding) { b.Destination = "orders.dlx" },
	} {
		b := genuine
		change(&b)
		if noted, isNote := n.Noted(b); isNote {
			t.Errorf("%s: %s", name, noted)
		}
		if garbled := n.GarbledNotes(topology.Topology{Bindings: []topology.Binding{b}}); len(garbled) == 1 == (name == "no argument") {
			t.Errorf("%s: garbled: %v", name, garbled)
		}
	}
}
