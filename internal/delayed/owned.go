package delayed

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// below returns the exchange that a level dead-letters to: the next lower level, or the exchange that delivers due
// messages.
func (n Names) below(l Level) string {
	if l.Bit == 0 {
		return n.DeliverExchange()
	}
	return n.Level(Level{Unit: l.Unit, Bit: l.Bit - 1})
}

// OwnsQueue reports whether a queue of the delayed exchange has this name.
func (n Names) OwnsQueue(queue string) bool {
	_, isLevel := n.LevelOf(queue)
	return isLevel || slices.Contains([]string{n.Inbox(), n.UnroutedQueue(), n.Refused()}, queue)
}

// OwnsExchange reports whether an exchange of the delayed exchange has this name.
func (n Names) OwnsExchange(exchange string) bool {
	_, isLevel := n.LevelOf(exchange)
	return isLevel || slices.Contains([]string{
		n.Exchange(), n.DeliverExchange(), n.UnroutedExchange(), n.Refused(), n.OnlyUnrouted(),
	}, exchange)
}

// IsLevelQueue reports whether a queue is one of the levels, retired or not, by its name and arguments.
func (n Names) IsLevelQueue(name string, queue topology.Queue) bool {
	l, named := n.LevelOf(name)
	return named && queue.Arguments["x-dead-letter-exchange"] == n.below(l)
}

// OwnerOf returns the delayed exchange, out of these, that a queue of the vhost belongs to.
func OwnerOf(queue string, exchanges []string, vhost topology.Topology) (owner Names, found bool) {
	for _, name := range exchanges {
		n := Names(name)
		if queue == n.Inbox() || queue == n.UnroutedQueue() || queue == n.Refused() || n.IsLevelQueue(queue, vhost.Queues[queue]) {
			return n, true
		}
	}
	return "", false
}

// Owned returns the delayed exchange's objects in a whole vhost. It leaves out foreign objects that touch the delayed
// exchange, such as a foreign queue bound to it. It also leaves out objects that only have the name of a level outside
// the specification.
func (e Exchange) Owned(vhost topology.Topology) topology.Topology {
	n, owned, known := e.Names(), topology.New(), e.Expand()
	for name, exchange := range vhost.Exchanges {
		_, isKnown := known.Exchanges[name]
		if _, isLevel := n.LevelOf(name); isKnown || isLevel && exchange.Type == "headers" {
			owned.Exchanges[name] = exchange
		}
	}
	for name, queue := range vhost.Queues {
		if _, isKnown := known.Queues[name]; isKnown || n.IsLevelQueue(name, queue) {
			owned.Queues[name] = queue
		}
	}
	for _, b := range vhost.Bindings {
		if _, from := owned.Exchanges[b.Source]; from && n.OwnsBinding(b) {
			owned.Bindings = append(owned.Bindings, b)
		}
	}
	topology.SortByText(owned.Bindings)
	for name := range e.Guard() {
		if policy, exists := vhost.Policies[name]; exists {
			owned.Policies[name] = policy
		}
	}
	return owned
}

// OwnsBinding reports whether the delayed exchange owns a binding. It owns notes and bindings between its objects,
// including a binding to the wrong level, so that a plan shows it.
func (n Names) OwnsBinding(b topology.Binding) bool {
	if _, isNote := n.Notes().Noted(b); isNote {
		return true
	}
	if !n.OwnsExchange(b.Source) {
		return false
	}
	if b.ToExchange {
		return n.OwnsExchange(b.Destination)
	}
	return n.OwnsQueue(b.Destination)
}

// LevelsIn lists the levels that have a queue or an exchange among these objects.
func (n Names) LevelsIn(objects topology.Topology) []Level {
	var levels []Level
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(objects.Exchanges)), maps.Keys(objects.Queues)) {
		if l, is := n.LevelOf(name); is {
			levels = append(levels, l)
		}
	}
	SortLevels(levels)
	return slices.Compact(levels)
}
