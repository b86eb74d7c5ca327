package delayed

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Below is the exchange that a level leads to: the next lower level's, or the one that routes what is due.
func (n Names) Below(l Level) string {
	if l.Bit == 0 {
		return n.DeliverExchange()
	}
	return n.Level(Level{Unit: l.Unit, Bit: l.Bit - 1})
}

// OwnsQueue reports whether the name is one that the delayed exchange gives to its queues.
func (n Names) OwnsQueue(queue string) bool {
	_, isLevel := n.LevelOf(queue)
	return isLevel || slices.Contains([]string{n.Inbox(), n.UnroutedQueue(), n.Refused()}, queue)
}

// OwnsExchange reports whether the name is one that the delayed exchange gives to its exchanges.
func (n Names) OwnsExchange(exchange string) bool {
	_, isLevel := n.LevelOf(exchange)
	return isLevel || slices.Contains([]string{
		n.Exchange(), n.DeliverExchange(), n.UnroutedExchange(), n.Refused(), n.OnlyUnrouted(),
	}, exchange)
}

// IsLevelQueue reports whether a queue, and not only its name, is one of the levels, retired or not.
func (n Names) IsLevelQueue(name string, queue topology.Queue) bool {
	l, named := n.LevelOf(name)
	return named && queue.Arguments["x-dead-letter-exchange"] == n.Below(l)
}

// OwnerOf is the one of these delayed exchanges that a queue of the vhost belongs to.
func OwnerOf(queue string, exchanges []string, vhost topology.Topology) (owner Names, found bool) {
	for _, name := range exchanges {
		n := Names(name)
		if queue == n.Inbox() || queue == n.UnroutedQueue() || queue == n.Refused() || n.IsLevelQueue(queue, vhost.Queues[queue]) {
			return n, true
		}
	}
	return "", false
}

// isLevelExchange is IsLevelQueue of an exchange.
func (n Names) isLevelExchange(name string, exchange topology.Exchange) bool {
	_, named := n.LevelOf(name)
	return named && exchange.Type == "headers"
}

// Owned picks out of a whole vhost what belongs to the delayed exchange. Objects of others are left out even where they
// meet its own: a foreign queue bound to the exchange is not its, nor is one that only has the name of a level that is out
// of the specification.
func (e Exchange) Owned(vhost topology.Topology) topology.Topology {
	n, owned, known := e.Names(), topology.New(), e.Expand()
	for name, exchange := range vhost.Exchanges {
		if _, isKnown := known.Exchanges[name]; isKnown || n.isLevelExchange(name, exchange) {
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
	topology.SortBindings(owned.Bindings)
	for name := range e.Guard() {
		if policy, exists := vhost.Policies[name]; exists {
			owned.Policies[name] = policy
		}
	}
	return owned
}

// OwnsBinding reports whether a binding is the delayed exchange's: between two of its objects, so that one that leads to
// the wrong level is seen, or a note.
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

// LevelsIn lists the levels of which there is a queue or an exchange among these objects.
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
