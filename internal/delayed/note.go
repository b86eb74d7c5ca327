package delayed

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// notePlaces are where bindings of others are noted. An exchange that is bound to itself gets nothing by that: brokers
// route a message through each exchange once.
func (n Names) notePlaces() []stored.NotePlace {
	return []stored.NotePlace{
		{Source: n.UnroutedExchange(), Destination: n.UnroutedExchange()},
		{Source: n.Exchange(), Destination: n.Exchange()},
	}
}

// NoteOf is the binding that notes one of somebody else's. It routes nothing.
func (n Names) NoteOf(b topology.Binding, going string) topology.Binding {
	return stored.Note(b, n.notePlaces(), going)
}

// Noted is the binding that a note is about; false if it is no note of the delayed exchange's, or was changed.
func (n Names) Noted(b topology.Binding) (topology.Binding, bool) {
	if !slices.Contains(n.notePlaces(), stored.NotePlace{Source: b.Source, Destination: b.Destination}) {
		return topology.Binding{}, false
	}
	return stored.Noted(b)
}

// GarbledNotes lists what leads from one of the exchanges as a note does and cannot be read: somebody changed it, and which
// binding it was about is not known.
func (n Names) GarbledNotes(vhost topology.Topology) []topology.Binding {
	return stored.Garbled(vhost, n.Noted, n.OwnsExchange)
}
