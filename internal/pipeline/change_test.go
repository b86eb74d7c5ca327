package pipeline

import (
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A binding of others goes with the pipeline's exchange, also while an apply that was killed has left it unbound, and with a
// queue that goes: not with one that was released.
func TestBindingsThatGo(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	toWork := topology.Binding{Source: "shop", Destination: "work", RoutingKey: "order.#"}
	toInbox := topology.Binding{Source: "shop", Destination: n.Inbox(), RoutingKey: "order.#"}
	listener := topology.Binding{Source: n.FailedExchange(), Destination: "listener"}
	for name, c := range map[string]struct {
		workQueue WorkQueue
		want      []topology.Binding
	}{
		"declared": {WorkQueue{Type: topology.Quorum, Declare: true}, []topology.Binding{listener, toInbox, toWork}},
		"released": {WorkQueue{Type: topology.Quorum}, []topology.Binding{listener, toInbox}},
	} {
		p := one(c.workQueue)
		vhost := Expand(p)
		vhost.Queues["work"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{DeclaredByArgument: "orders"}}
		vhost.Bindings = append(vhost.Bindings, toWork, toInbox, n.NoteOf(listener, n.FailedExchange()))
		if found := BindingsThatGo(p, vhost); !slices.EqualFunc(found, c.want, topology.Binding.Equal) {
			t.Errorf("%s: %v", name, found)
		}
	}
}
