package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// bindingsTo lists the owner's bindings that lead to the queues.
func (c Change) bindingsTo(queues map[string]topology.Queue) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(c.Live.Bindings), func(b topology.Binding) bool { return !leadsTo(b, queues) })
}

// owns reports whether a binding is the owner's.
func (c Change) owns(b topology.Binding) bool { return slices.ContainsFunc(c.Live.Bindings, b.Equal) }

// bindingsOf lists the bindings that come from or lead to an exchange.
func (c Change) bindingsOf(exchange string) []topology.Binding {
	var found []topology.Binding
	for _, b := range c.All.Bindings {
		if b.Source == exchange || (b.ToExchange && b.Destination == exchange) {
			found = append(found, b)
		}
	}
	return found
}

// requireReadable fails if a binding of somebody else's could not be put back as it was: the management API shows its
// arguments as JSON, where a decimal is a number, and nothing is the text "undefined" (seen on 3.10.8 and 4.3.6).
func (c Change) requireReadable(b topology.Binding) error {
	if c.owns(b) {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(b.Arguments)) {
		value := b.Arguments[key]
		if text, isText := value.(string); isText && text != "undefined" && !strings.HasPrefix(text, "Not UTF-8, base64 is: ") {
			continue
		}
		switch value.(type) {
		case int64, bool:
			continue
		}
		return fmt.Errorf("the argument %q of binding %q may be of a type that the management API does not show, so the binding could not "+
			"be put back as it is: remove it first", key, b)
	}
	return nil
}

// requireReadableOf fails if a binding of an exchange that is re-created could not be put back as it was.
func (c Change) requireReadableOf(recreated map[string]topology.Exchange) error {
	for _, exchange := range slices.Sorted(maps.Keys(recreated)) {
		for _, b := range c.bindingsOf(exchange) {
			if err := c.requireReadable(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// requireLasting fails if an exchange that is re-created is the last one that another is bound to which deletes itself
// without bindings: it would be gone, and with it what applications publish to.
func (c Change) requireLasting(recreated map[string]topology.Exchange) error {
	for _, b := range c.All.Bindings {
		if _, leads := recreated[b.Destination]; !leads || !b.ToExchange || !c.All.Exchanges[b.Source].AutoDelete {
			continue
		}
		_, sourceToo := recreated[b.Source]
		leadsElsewhere := func(other topology.Binding) bool {
			return other.Source == b.Source && (!other.ToExchange || other.Destination != b.Destination)
		}
		if !sourceToo && !slices.ContainsFunc(c.All.Bindings, leadsElsewhere) {
			return fmt.Errorf("exchange %q would have to be re-created, but is all that exchange %q is bound to, "+
				"which deletes itself without bindings: bind that one to something else first, or re-create it afterwards", b.Destination, b.Source)
		}
	}
	return nil
}

// leadsTo reports whether a binding leads to one of the queues.
func leadsTo(b topology.Binding, queues map[string]topology.Queue) bool {
	_, leads := queues[b.Destination]
	return leads && !b.ToExchange
}

// leadsInto reports whether a binding leads to one of the exchanges or queues.
func leadsInto(b topology.Binding, t topology.Topology) bool {
	_, leads := t.Exchanges[b.Destination]
	return leads && b.ToExchange || leadsTo(b, t.Queues)
}

// bindingsWithoutQueues lists the bindings to delete that do not go with their queues.
func bindingsWithoutQueues(t topology.Topology) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(t.Bindings), func(b topology.Binding) bool { return leadsTo(b, t.Queues) })
}

// moved lists those of the bindings to delete whose keys lead to other queues from now on, and that fall back meanwhile.
func (c Change) moved(deleted, created []topology.Binding) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(deleted), func(b topology.Binding) bool {
		leadsElsewhere := func(other topology.Binding) bool {
			return other.Source == b.Source && other.RoutingKey == b.RoutingKey && other.Destination != b.Destination
		}
		return c.FallsBack == nil || !c.FallsBack(b) || !slices.ContainsFunc(created, leadsElsewhere)
	})
}

// bindingsOfOthers lists the bindings that go neither with their exchange nor with their queue.
func bindingsOfOthers(t topology.Topology) []topology.Binding {
	return slices.DeleteFunc(bindingsWithoutQueues(t), func(b topology.Binding) bool {
		_, withExchange := t.Exchanges[b.Source]
		return withExchange
	})
}

// without returns the queues that the other map does not name.
func without[T any](queues map[string]topology.Queue, names map[string]T) map[string]topology.Queue {
	rest := maps.Clone(queues)
	maps.DeleteFunc(rest, func(name string, _ topology.Queue) bool { _, named := names[name]; return named })
	return rest
}
