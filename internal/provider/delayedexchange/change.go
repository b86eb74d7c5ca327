package delayedexchange

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func change(prior, next *delayed.Exchange, vhost topology.Vhost) (c apply.Change) {
	e := prior
	switch {
	case prior == nil:
		e = next
		c = apply.Change{
			Live: delayed.Owned(*e, vhost.Topology), Wanted: delayed.Expand(*e), Identity: delayed.Identity(*e),
		}
	case next == nil:
		c = apply.Change{Live: delayed.Owned(*e, vhost.Topology)}
	default:
		e = next
		live := topology.Merge(delayed.Owned(*prior, vhost.Topology), delayed.Owned(*next, vhost.Topology))
		c = apply.Change{
			Live: live, Wanted: wantedBeside(live, *next),
			RestoresDeadLetterRoute: delayed.RestoresDeadLetterRoute(*prior, vhost.Topology),
		}
	}
	n := e.Names()
	c.Vhost, c.All, c.Guard, c.CatchAll, c.Entrance = e.Vhost, vhost, delayed.Guard(*e), n.UnroutedQueue(), n.Exchange()
	c.NoteOf, c.Noted, c.Together = n.NoteOf, n.Noted, true
	return c
}

// wantedBeside is what the delayed exchange expands to. The queue of a retired level is left as it is: it goes as soon as it is
// empty, and re-creating it would be refused while it is not.
func wantedBeside(live topology.Topology, e delayed.Exchange) topology.Topology {
	expanded := delayed.Expand(e)
	for _, l := range e.Retired {
		name := e.Names().Level(l)
		if queue, exists := live.Queues[name]; exists {
			expanded.Queues[name] = queue
		}
	}
	return expanded
}
