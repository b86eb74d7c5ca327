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
		v.Exchanges[n.DeadLetterExchange()] = whole.Exchanges[n.DeadLetterExchange()]
		return v
	}
	with := func(change func(*topology.Topology)) topology.Topology {
		v := onlyExchange()
		v.Queues[n.Inbox()] = whole.Queues[n.Inbox()]
		change(&v)
		return v
	}
	for name, test := range map[string]struct {
		vhost topology.Topology
		want  bool
	}{
		"nothing":                {topology.New(), false},
		"the exchange":           {onlyExchange(), true},
		"the inbox, too":         {with(func(*topology.Topology) {}), true},
		"the guard, too":         {with(func(v *topology.Topology) { v.Policies = Guard(p) }), true},
		"objects of others, too": {with(func(v *topology.Topology) { v.Queues["other"] = topology.Queue{Type: topology.Classic} }), true},
		"the definition, too":    {Identity(p), false},
		"the failed queue, too":  {with(func(v *topology.Topology) { v.Queues[n.FailedQueue()] = whole.Queues[n.FailedQueue()] }), false},
		"the final policy":       {with(func(v *topology.Topology) { v.Policies = whole.Policies }), false},
		"another exchange":       {with(func(v *topology.Topology) { v.Exchanges[n.DeadLetterExchange()] = topology.Exchange{Type: "topic"} }), false},
		"another inbox":          {with(func(v *topology.Topology) { v.Queues[n.Inbox()] = topology.Queue{Type: topology.Classic} }), false},
		"a queue that is bound": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: n.DeadLetterExchange(), Destination: "other"}}
		}), false},
		"an inbox that is bound": {with(func(v *topology.Topology) { v.Bindings = []topology.Binding{{Source: "other", Destination: n.Inbox()}} }), false},
		"an exchange that is fed": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: "other", Destination: n.DeadLetterExchange(), ToExchange: true}}
		}), false},
		"by the default exchange": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Destination: n.Inbox(), RoutingKey: n.Inbox()}}
		}), true},
	} {
		if got := InterruptedCreation(p, test.vhost); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
