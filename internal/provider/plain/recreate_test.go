package plain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// An exchange and a queue can have the same name.
func TestNotesOfEachObject(t *testing.T) {
	t.Parallel()
	leaving := topology.Binding{Source: "orders", Destination: "bills", RoutingKey: "k"}
	toQueue := topology.Binding{Source: "events", Destination: "orders"}
	toExchange := topology.Binding{Source: "events", Destination: "orders", ToExchange: true}
	var vhost topology.Vhost
	for _, b := range []topology.Binding{leaving, toQueue, toExchange} {
		vhost.Bindings = append(vhost.Bindings, notes.Of(b, ""))
	}
	require.Equal(t, []topology.Binding{notes.Of(leaving, ""), notes.Of(toExchange, "")}, notesOf("orders", true, vhost))
	require.Equal(t, []topology.Binding{notes.Of(toQueue, "")}, notesOf("orders", false, vhost))
}
