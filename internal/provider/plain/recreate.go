package plain

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// noteExchange keeps the notes of bindings whose exchange or queue is re-created. Every vhost has it, and it cannot be deleted.
const noteExchange = "amq.direct"

// Recreating owns a single object that is re-created with all its bindings.
type Recreating struct{ apply.Plain }

// Notes implements [apply.Owner].
func (Recreating) Notes() stored.Notes { return stored.Notes{noteExchange} }

// RestoresBindings implements [apply.Owner].
func (Recreating) RestoresBindings() bool { return true }

// NotesOf are the notes of an object's bindings, from a re-creation that was killed.
func NotesOf(name string, exchange bool, vhost topology.Vhost) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(vhost.Bindings), func(b topology.Binding) bool {
		original, isNote := stored.Notes{noteExchange}.Noted(b)
		return !isNote || original.Source != name && (original.Destination != name || original.ToExchange != exchange)
	})
}
