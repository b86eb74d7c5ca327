package pipeline

import (
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A binding that an apply which was killed has left unbound goes with the pipeline only if its queue does: one that was
// released gets it back.
func TestNotedBindingsGoWithTheirQueues(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	toWork := topology.Binding{Source: "shop", Destination: "work", RoutingKey: "order.#"}
	toInbox := topology.Binding{Source: "shop", Destination: n.Inbox(), RoutingKey: "order.#"}
	for name, c := range map[string]struct {
		workQueue WorkQueue
		want      []topology.Binding
	}{
		"declared": {WorkQueue{Type: topology.Quorum, Declare: true}, []topology.Binding{toInbox, toWork}},
		"released": {WorkQueue{Type: topology.Quorum}, []topology.Binding{toInbox}},
	} {
		p := one(c.workQueue)
		vhost := Expand(p)
		vhost.Queues["work"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{DeclaredByArgument: "orders"}}
		vhost.Bindings = append(vhost.Bindings, n.NoteOf(toWork, ""), n.NoteOf(toInbox, ""))
		if found := BindingsThatGo(p, vhost); !slices.EqualFunc(found, c.want, topology.Binding.Equal) {
			t.Errorf("%s: %v", name, found)
		}
	}
}
