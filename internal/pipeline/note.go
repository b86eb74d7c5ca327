package pipeline

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// NoteOf is the binding that notes one of somebody else's. It leads from the return exchange to the failed
// exchange, or between two others if one of these is going, and routes nothing.
func (p Pipeline) NoteOf(b topology.Binding, going string) topology.Binding {
	return stored.Note(b, p.engine().notePlaces(p.Names()), going)
}

// isNotePlace reports whether a pipeline of some engine notes bindings there.
func (n Names) isNotePlace(place stored.NotePlace) bool {
	for _, e := range engines {
		if slices.Contains(e.notePlaces(n), place) {
			return true
		}
	}
	return false
}

// Noted is the binding that a note is about; false if it is no note of the pipeline's, or was changed.
func (n Names) Noted(b topology.Binding) (topology.Binding, bool) {
	noted, is := stored.Noted(b)
	if !is || !n.isNotePlace(stored.NotePlace{Source: b.Source, Destination: b.Destination}) {
		return topology.Binding{}, false
	}
	return noted, true
}

// GarbledNotes lists what leads from one of the pipeline's exchanges as a note does and cannot be read: somebody changed
// it, and which binding it was about is not known.
func (n Names) GarbledNotes(vhost topology.Topology) []topology.Binding {
	return stored.Garbled(vhost, n.Noted, n.OwnsExchange)
}
