package pipeline

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestInterruptedCreation(t *testing.T) {
	t.Parallel()
	p := orders()
	n, whole := p.Names(), Expand(p)
	onlyExchange := func() topology.Topology {
		v := topology.New()
		v.Exchanges[n.FailedExchange()] = whole.Exchanges[n.FailedExchange()]
		return v
	}
	with := func(change func(*topology.Topology)) topology.Topology {
		v := onlyExchange()
		v.Queues[n.FailedQueue()] = whole.Queues[n.FailedQueue()]
		change(&v)
		return v
	}
	for name, test := range map[string]struct {
		vhost topology.Topology
		want  bool
	}{
		"nothing":                {topology.New(), false},
		"the exchange":           {onlyExchange(), true},
		"the failed queue, too":  {with(func(*topology.Topology) {}), true},
		"the guard, too":         {with(func(v *topology.Topology) { v.Policies = Guard(p) }), true},
		"objects of others, too": {with(func(v *topology.Topology) { v.Queues["other"] = topology.Queue{Type: topology.Classic} }), true},
		"the definition, too":    {Identity(p), false},
		"the inbox, too":         {with(func(v *topology.Topology) { v.Queues[n.Inbox()] = whole.Queues[n.Inbox()] }), false},
		"the final policy":       {with(func(v *topology.Topology) { v.Policies = whole.Policies }), false},
		"another exchange":       {with(func(v *topology.Topology) { v.Exchanges[n.FailedExchange()] = topology.Exchange{Type: "topic"} }), false},
		"another queue":          {with(func(v *topology.Topology) { v.Queues[n.FailedQueue()] = topology.Queue{Type: topology.Classic} }), false},
		"a queue that is bound": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: n.FailedExchange(), Destination: "other"}}
		}), false},
		"a failed queue that is bound": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: "other", Destination: n.FailedQueue()}}
		}), false},
		"an exchange that is fed": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: "other", Destination: n.FailedExchange(), ToExchange: true}}
		}), false},
		"by the default exchange": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Destination: n.FailedQueue(), RoutingKey: n.FailedQueue()}}
		}), true},
	} {
		if got := InterruptedCreation(p, test.vhost); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
