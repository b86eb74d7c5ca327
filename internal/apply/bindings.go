package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// bindingsTo lists the owner's bindings to the queues.
func (c Change) bindingsTo(queues map[string]topology.Queue) []topology.Binding {
	return leading(c.Live.Bindings, queues)
}

func (c Change) owns(b topology.Binding) bool { return slices.ContainsFunc(c.Live.Bindings, b.Equal) }

// requireReadable fails if one of the bindings is another owner's and could not be restored exactly. The management API
// shows arguments as JSON (seen on 3.10.8 and 4.3.6). There, a decimal is a number, and an undefined value is the text
// "undefined".
func (c Change) requireReadable(bindings []topology.Binding) error {
	for _, b := range bindings {
		if c.owns(b) {
			continue
		}
		for key, value := range sorted(b.Arguments) {
			if !isExact(value) {
				return fmt.Errorf("the management API does not show the exact type of the argument %q of binding %q, so the binding cannot be "+
					"restored: remove the binding first", key, b)
			}
		}
	}
	return nil
}

func isExact(argument any) bool {
	switch value := argument.(type) {
	case int64, bool:
		return true
	case string:
		return value != "undefined" && !strings.HasPrefix(value, "Not UTF-8, base64 is: ")
	}
	return false
}

// requireLasting fails if a re-created exchange or queue is the only target of an auto-delete exchange. That exchange would
// delete itself, and applications could no longer publish to it.
func (c Change) requireLasting(recreated topology.Topology) error {
	for _, b := range c.All.Bindings {
		if !leadsInto(b, recreated) || !c.All.Exchanges[b.Source].AutoDelete {
			continue
		}
		leadsElsewhere := func(other topology.Binding) bool {
			return other.Source == b.Source && (other.ToExchange != b.ToExchange || other.Destination != b.Destination)
		}
		if !has(recreated.Exchanges, b.Source) && !slices.ContainsFunc(c.All.Bindings, leadsElsewhere) {
			return fmt.Errorf("%q must be re-created, but is the only target of the auto-delete exchange %q, which would delete itself. "+
				"Bind the auto-delete exchange to another target first, or re-create it afterwards", b.Destination, b.Source)
		}
	}
	return nil
}

func leadsTo(b topology.Binding, queues map[string]topology.Queue) bool {
	return !b.ToExchange && has(queues, b.Destination)
}

func leadsInto(b topology.Binding, t topology.Topology) bool {
	return b.ToExchange && has(t.Exchanges, b.Destination) || leadsTo(b, t.Queues)
}

// leading lists the bindings that lead to one of the queues.
func leading(bindings []topology.Binding, queues map[string]topology.Queue) []topology.Binding {
	return only(bindings, func(b topology.Binding) bool { return leadsTo(b, queues) })
}

// unbound divides the deleted bindings whose exchange and queue stay. The keys of moved ones get another queue, and
// their messages fall back meanwhile.
func (d delta) unbound() (moved, others []topology.Binding) {
	moves := func(b topology.Binding) bool {
		leadsElsewhere := func(other topology.Binding) bool {
			return other.Source == b.Source && other.RoutingKey == b.RoutingKey && other.Destination != b.Destination
		}
		return d.FallsBack != nil && d.FallsBack(b) && slices.ContainsFunc(d.Create.Bindings, leadsElsewhere)
	}
	all := bindingsOfOthers(d.Delete)
	return only(all, moves), slices.DeleteFunc(all, moves)
}

// bindingsOfOthers lists the deleted bindings whose exchange and queue stay.
func bindingsOfOthers(t topology.Topology) []topology.Binding {
	return only(t.Bindings, func(b topology.Binding) bool { return !has(t.Exchanges, b.Source) && !leadsTo(b, t.Queues) })
}

// BoundError says that objects were not deleted, because others have bound them.
type BoundError struct {
	Bindings []topology.Binding
	// Unbound are bindings of others that a killed apply left unbound. Only an apply restores them.
	Unbound []topology.Binding
	// releasable says that a pipeline can release one of the queues to others.
	releasable bool
}

// Error lists the bindings and the remedies.
func (e *BoundError) Error() string {
	lines := []string{"Bindings of others lead to exchanges or queues that would be deleted:"}
	for _, b := range e.Bindings {
		lines = append(lines, fmt.Sprintf("  - %s", b))
	}
	for _, b := range e.Unbound {
		lines = append(lines, fmt.Sprintf("  - %s (unbound by an apply that was killed)", b))
	}
	lines = append(lines, "")
	if len(e.Unbound) > 0 {
		lines = append(lines, "To restore bindings that a killed apply has unbound, apply with the resource in the configuration.")
	}
	switch {
	case e.releasable:
		lines = append(lines, "To keep a declared queue with its bindings, set declare = false (within failed_queue for a "+
			"failed queue) and apply. Then destroy or make this change. Or remove these bindings first.")
	case len(e.Bindings) > 0:
		lines = append(lines, "Remove these bindings first.")
	}
	return strings.Join(lines, "\n")
}

// Bound returns the bindings that will prevent the change, as far as the vhost shows, or nil.
func (c Change) Bound() *BoundError { return c.bound(c.delta().going(), c.All.Bindings) }

// bound returns an error about the bindings of others to deleted objects, or nil.
func (c Change) bound(going topology.Topology, bindings []topology.Binding) *BoundError {
	found := BoundError{}
	for _, b := range bindings {
		if leadsInto(b, going) && c.foreign(b) {
			found.Bindings = append(found.Bindings, b)
			found.releasable = found.releasable || !b.ToExchange && !c.RestoresBindings && slices.Contains(c.SharedQueues, b.Destination)
		}
	}
	if !c.takesBindings() {
		found.Unbound = c.leftUnbound()
	}
	if len(found.Bindings)+len(found.Unbound) == 0 {
		return nil
	}
	return &found
}

// takesBindings reports whether the change also deletes bindings of others.
func (c Change) takesBindings() bool { return c.Forced && c.ForceTakesBindings }

// leftUnbound lists other owners' bindings to the owner's exchanges that a killed apply recorded in notes and left
// unbound. A removal would lose them with their notes.
func (c Change) leftUnbound() []topology.Binding {
	if len(c.Wanted.Exchanges) > 0 {
		return nil
	}
	return c.noted(func(b topology.Binding) bool {
		return b.ToExchange && has(c.All.Exchanges, b.Source) &&
			(has(c.Live.Exchanges, b.Destination) || !has(c.All.Exchanges, b.Destination))
	})
}

// foreign reports whether a binding prevents the deletion of its target. Such a binding was made by another owner
// rather than the broker, and neither a proof nor force allows its loss.
func (c Change) foreign(b topology.Binding) bool {
	_, isNote := c.Notes.Noted(b)
	own := b.Source == "" || c.owns(b) || slices.ContainsFunc(c.Wanted.Bindings, b.Equal) || isNote
	return !own && !c.takesBindings() && len(c.returnsFrom(b)) == 0
}

// returnsFrom calls ReturnsFrom for a binding that existed when the proof began.
func (c Change) returnsFrom(b topology.Binding) []string {
	if c.ReturnsFrom == nil || !slices.ContainsFunc(c.All.Bindings, b.Equal) {
		return nil
	}
	return c.ReturnsFrom(b, c.All.Topology)
}

// going returns the deleted exchanges, and the queues that are deleted or re-created, unless their bindings come back.
func (d delta) going() topology.Topology {
	queues := maps.Clone(d.Delete.Queues)
	if !d.RestoresBindings {
		maps.Copy(queues, d.Replace.Queues)
	}
	return topology.Topology{Exchanges: d.Delete.Exchanges, Queues: queues}
}

// requireUnbound fails with *BoundError if others have now bound one of the objects. While a bound queue was away, 382 of
// 386 messages for it were lost.
func (e *execution) requireUnbound(ctx context.Context, going topology.Topology) error {
	var now []topology.Binding
	for _, o := range objectsOf(going) {
		read := e.client.BindingsTo
		if o.kind == anExchange {
			read = e.client.BindingsToExchange
		}
		to, err := read(ctx, e.Vhost, o.name)
		if err != nil && !broker.IsNotFound(err) {
			return fmt.Errorf("cannot tell whether others have bound %s: %w", o, err)
		}
		now = append(now, to...)
	}
	found := e.bound(going, now)
	if found == nil {
		return nil // a nil *BoundError would be an error
	}
	return found
}
