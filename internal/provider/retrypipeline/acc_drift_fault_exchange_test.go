package retrypipeline_test

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// exchangeFaults: an exchange is immutable, so each of them but the first is re-created.
func exchangeFaults(t topology.Topology, name string) []fault {
	object, want := "exchanges "+name, t.Exchanges[name]
	faults := []fault{{
		object: object, what: "deleted", goesWith: bindingsAt(t, name, true),
		change: mutation{delete: topology.Topology{Exchanges: map[string]topology.Exchange{name: want}}},
	}}
	remade := func(what, attribute string, e topology.Exchange) {
		faults = append(faults, fault{
			object: object, what: what, attributes: []string{attribute},
			change: mutation{exchange: map[string]topology.Exchange{name: e}},
		})
	}
	otherType, transient, autoDelete, internal := want, want, want, want
	otherType.Type = opposites[want.Type]
	remade("type changed", "type", otherType)
	transient.Transient = true
	remade("transient", "type", transient)
	autoDelete.AutoDelete = true
	remade("auto-delete", "type", autoDelete)
	internal.Internal = true
	remade("internal", "type", internal)
	for _, a := range alterations(want.Arguments, "by-hand", "yes") {
		e := want
		e.Arguments = a.arguments
		remade(a.what, "arguments "+a.key, e)
	}
	return faults
}
