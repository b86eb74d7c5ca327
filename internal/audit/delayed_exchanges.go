package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// delayedExchange is a delayed exchange of the vhost, and what it should consist of: the levels of its definition, if that can
// be read, and all those that are there with all below them.
type delayedExchange struct {
	delayed.Names
	expected topology.Topology
}

// findDelayedExchanges finds the delayed exchanges. One is recognized by its definition, or, if that is missing, by the
// exchange that delivers with its alternate exchange.
func (g graph) findDelayedExchanges() []delayedExchange {
	names := delayed.Found(g.vhost.Topology)
	for exchange, alternate := range g.alternates {
		name, delivers := strings.CutSuffix(exchange, delayed.Names("").DeliverExchange())
		if delivers && name != "" && alternate == delayed.Names(name).UnroutedExchange() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var found []delayedExchange
	for _, name := range slices.Compact(names) {
		e, err := delayed.Recover(name, g.vhost.Name, g.vhost.Topology)
		if err != nil {
			e = withoutLevels(name)
		}
		e.Retired = e.RetiredUpTo(e.Names().LevelsIn(delayed.Owned(e, g.vhost.Topology)))
		found = append(found, delayedExchange{e.Names(), delayed.Expand(e)})
	}
	return found
}

// withoutLevels is a delayed exchange of which nothing is known but the name.
func withoutLevels(name string) delayed.Exchange {
	e := delayed.Exchange{Name: name}
	e.Precision.Wait = 1
	return e
}

// ownQueues lists the own queues of the delayed exchange that are there.
func (g graph) ownQueues(d delayedExchange) []string {
	var queues []string
	for name := range d.expected.Queues {
		if _, exists := g.vhost.Queues[name]; exists {
			queues = append(queues, name)
		}
	}
	slices.Sort(queues)
	return queues
}

// isOfDelayedExchange reports whether a queue is an own queue of a delayed exchange, which has rules of its own.
func (g graph) isOfDelayedExchange(queue string) bool {
	for _, d := range g.delayed {
		if _, is := d.expected.Queues[queue]; is {
			return true
		}
	}
	return false
}

func onDelayedExchange(d delayedExchange, message, remedy string) Finding {
	return Finding{Object: Object{"delayed_exchange", string(d.Names)}, Message: message, Remedy: remedy}
}

// bypassedDelays finds delayed exchanges that lead elsewhere than to their inbox.
func bypassedDelays(g graph) []Finding {
	var found []Finding
	for _, d := range g.delayed {
		var others []string
		for _, b := range g.bindings[d.Exchange()] {
			if _, isNote := d.Noted(b); !isNote && (b.ToExchange || b.Destination != d.Inbox()) {
				others = append(others, destination(b))
			}
		}
		if len(others) > 0 {
			found = append(found, onDelayedExchange(d,
				fmt.Sprintf(bypassed, d.Exchange(), listed(others)), fmt.Sprintf(bypassedRemedy, d.DeliverExchange())))
		}
	}
	return found
}

// unboundDelayedInboxes finds delayed exchanges that delay nothing.
func unboundDelayedInboxes(g graph) []Finding {
	var found []Finding
	for _, d := range g.delayed {
		if !g.bound(d.Exchange(), d.Inbox(), unknown) {
			found = append(found, onDelayedExchange(d, fmt.Sprintf(delayedInboxUnbound, d.Inbox(), d.Exchange()), runApply))
		}
	}
	return found
}

// unboundUnrouted finds delayed exchanges that have nowhere to put what cannot be delayed, or routed when it is due.
func unboundUnrouted(g graph) []Finding {
	var found []Finding
	for _, d := range g.delayed {
		switch {
		case !g.bound(d.UnroutedExchange(), d.UnroutedQueue(), unknown):
			found = append(found, onDelayedExchange(d, fmt.Sprintf(unroutedUnbound, d.UnroutedQueue(), d.UnroutedExchange()), runApply))
		case g.alternates[d.DeliverExchange()] != d.UnroutedExchange():
			found = append(found, onDelayedExchange(d, fmt.Sprintf(unroutedNoAlternate, d.UnroutedExchange(), d.DeliverExchange()), runApply))
		}
	}
	return found
}

// unboundLevels finds levels of which something is missing.
func unboundLevels(g graph) []Finding {
	var found []Finding
	for _, d := range g.delayed {
		if missing := g.missingOfLevels(d); len(missing) > 0 {
			found = append(found, onDelayedExchange(d, fmt.Sprintf(levelUnbound, string(d.Names), listed(missing)), runApply))
		}
	}
	return found
}

func (g graph) missingOfLevels(d delayedExchange) []string {
	var missing []string
	for _, l := range d.LevelsIn(d.expected) {
		name := d.Level(l)
		if g.vhost.Exchanges[name].Type != d.expected.Exchanges[name].Type {
			missing = append(missing, quoted("exchange", name))
		}
		if _, exists := g.vhost.Queues[name]; !exists {
			missing = append(missing, quoted("queue", name))
		}
		for _, b := range d.expected.Bindings {
			if b.Source == name && !slices.ContainsFunc(g.bindings[name], b.Equal) {
				missing = append(missing, "the binding from "+quoted("exchange", name)+" to "+destination(b))
			}
		}
	}
	return missing
}

// enteredLevels finds ways into the levels besides those of the sidecar and the levels themselves.
func enteredLevels(g graph) []Finding {
	if len(g.delayed) == 0 {
		return nil
	}
	var found []Finding
	for _, queue := range g.deadLettering() {
		targets := g.targets(queue)
		for _, d := range g.delayed {
			if !d.OwnsQueue(queue) && slices.ContainsFunc(targets, d.isLevel) {
				f := onQueue(queue, fmt.Sprintf(levelEntered, quoted("Queue", queue), d.Names), fmt.Sprintf(levelEnteredRemedy, d.Exchange()))
				f.queues = append(g.ownQueues(d), queue)
				found = append(found, f)
			}
		}
	}
	for _, b := range g.vhost.Bindings {
		for _, d := range g.delayed {
			if b.Source != "" && b.Source != d.Exchange() && d.isLevel(b.Destination) && !slices.ContainsFunc(d.expected.Bindings, b.Equal) {
				found = append(found, onDelayedExchange(d,
					fmt.Sprintf(levelEntered, quoted("Exchange", b.Source), d.Names), fmt.Sprintf(levelEnteredRemedy, d.Exchange())))
			}
		}
	}
	return found
}

// isLevel reports whether it is the name of one of the levels.
func (d delayedExchange) isLevel(name string) bool {
	_, own := d.expected.Queues[name]
	return own && name != d.Inbox() && name != d.UnroutedQueue()
}

// freezingDeliveries finds queues that stop the levels of a delayed exchange when they are full.
func freezingDeliveries(g graph) []Finding {
	var found []Finding
	for _, d := range g.delayed {
		own, targets := g.ownQueues(d), map[string]bool{}
		for _, queue := range own {
			for _, target := range g.targets(queue) {
				targets[target] = true
			}
		}
		var full []string
		for target := range targets {
			if _, isOwn := d.expected.Queues[target]; !isOwn && g.rejectsWhenFull(target, true) {
				full = append(full, target)
			}
		}
		for _, group := range g.byOrigin(full, "overflow") {
			f := group.finding(fmt.Sprintf(deliveryFreezes, d.Names, queueList(group.queues)), deliveryFreezesRemedy)
			f.queues = append(f.queues, own...)
			found = append(found, f)
		}
	}
	return found
}

// unreadableDelayDefinitions finds delayed exchanges that cannot be read back from the broker.
func unreadableDelayDefinitions(g graph) []Finding {
	var found []Finding
	for _, d := range g.delayed {
		_, err := delayed.FindDefinition(d.Names, g.vhost.Topology)
		if err != nil && g.bound(d.UnroutedExchange(), d.UnroutedQueue(), unknown) {
			found = append(found, onDelayedExchange(d, fmt.Sprintf(delayDefinitionUnreadable, d.Names, err), definitionUnreadableRemedy))
		}
	}
	return found
}

// destination is where a binding leads, in words.
func destination(b topology.Binding) string {
	if b.ToExchange {
		return quoted("exchange", b.Destination)
	}
	return quoted("queue", b.Destination)
}
