package delayed

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func (n Names) noteExchanges() []string { return []string{n.UnroutedExchange(), n.Exchange()} }

// NoteOf is the binding that notes one of somebody else's while an exchange is going.
func (n Names) NoteOf(b topology.Binding, going string) topology.Binding {
	return stored.Note(b, n.noteExchanges(), going)
}

// Noted is the binding that a note is about; false if it is no note of the delayed exchange's, or was changed.
func (n Names) Noted(b topology.Binding) (topology.Binding, bool) {
	return stored.Noted(b, n.noteExchanges())
}

// GarbledNotes lists what leads from one of the exchanges as a note does and cannot be read: somebody changed it, and which
// binding it was about is not known.
func (n Names) GarbledNotes(vhost topology.Topology) []topology.Binding {
	return stored.Garbled(vhost, n.Noted, n.OwnsExchange)
}
