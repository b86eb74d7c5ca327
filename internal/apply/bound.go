package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// BoundError says that objects were not deleted, since bindings of others lead to them.
type BoundError struct {
	Bindings []topology.Binding
	// Unbound are bindings of others that an apply which was killed has left unbound. Only an apply puts them back.
	Unbound []topology.Binding
	// releasable says that one of the queues can be left to others.
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
		lines = append(lines, "An apply with the resource in the configuration puts back what a killed one has unbound.")
	}
	switch {
	case e.releasable:
		lines = append(lines, "To keep a declared queue with its bindings, set declare = false (declare_failed_queue = false for a "+
			"failed queue), apply, and then destroy or make this change. Or remove these bindings first.")
	case len(e.Bindings) > 0:
		lines = append(lines, "Remove these bindings first.")
	}
	return strings.Join(lines, "\n")
}

func isBound(err error) bool {
	var bound *BoundError
	return errors.As(err, &bound)
}

// Bound is what will keep the change from being made, as far as the vhost shows; nil if nothing will.
func (c Change) Bound() *BoundError { return c.bound(c.going(), c.All.Bindings) }

// bound is an error about those of the bindings that are others' and lead to an object that goes, nil if there is none.
func (c Change) bound(going topology.Topology, bindings []topology.Binding) *BoundError {
	found := BoundError{}
	for _, b := range bindings {
		if leadsInto(b, going) && c.foreign(b) {
			found.Bindings = append(found.Bindings, b)
			found.releasable = found.releasable || !b.ToExchange && slices.Contains(c.SharedQueues, b.Destination)
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

// takesBindings reports whether bindings of others go along.
func (c Change) takesBindings() bool { return c.Forced && c.ForceTakesBindings }

// leftUnbound are the bindings of others to the owner's exchanges that an apply which was killed has noted and left unbound. A
// removal would lose them with their notes.
func (c Change) leftUnbound() []topology.Binding {
	if c.Noted == nil || len(c.Wanted.Exchanges) > 0 {
		return nil
	}
	var found []topology.Binding
	for _, note := range c.Live.Bindings {
		b, isNote := c.Noted(note)
		_, hasSource := c.All.Exchanges[b.Source]
		_, exists := c.All.Exchanges[b.Destination]
		_, own := c.Live.Exchanges[b.Destination]
		if isNote && b.ToExchange && hasSource && (own || !exists) && !slices.ContainsFunc(c.All.Bindings, b.Equal) {
			found = append(found, b)
		}
	}
	return found
}

// foreign reports whether a binding keeps the object that it leads to from being deleted: somebody else has made it, and not the broker,
// and it does not go with what is proved to be empty, or by force.
func (c Change) foreign(b topology.Binding) bool {
	own := b.Source == "" || c.owns(b) || slices.ContainsFunc(c.Wanted.Bindings, b.Equal) || c.isNote(b)
	return !own && !c.takesBindings() && len(c.returnsFrom(b)) == 0
}

// returnsFrom is ReturnsFrom of a binding that was there when the proof began.
func (c Change) returnsFrom(b topology.Binding) []string {
	if c.ReturnsFrom == nil || !slices.ContainsFunc(c.All.Bindings, b.Equal) {
		return nil
	}
	return c.ReturnsFrom(b, c.All.Topology)
}

// going are the exchanges that the change deletes, and the queues that it deletes for good or to re-create them.
func (c Change) going() topology.Topology {
	changes := topology.Diff(c.Wanted, c.Live)
	queues := maps.Clone(changes.Delete.Queues)
	maps.Copy(queues, changes.Replace.Queues)
	return topology.Topology{Exchanges: changes.Delete.Exchanges, Queues: queues}
}

// requireUnbound fails with *BoundError if bindings of others lead to one of the objects now.
func (e *execution) requireUnbound(ctx context.Context, going topology.Topology) error {
	var now []topology.Binding
	look := func(bindings []topology.Binding, err error) error {
		now = append(now, bindings...)
		if broker.IsNotFound(err) {
			return nil
		}
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(going.Exchanges)) {
		if err := look(e.client.BindingsToExchange(ctx, e.Vhost, name)); err != nil {
			return fmt.Errorf("whether others have bound exchange %q is not known: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(going.Queues)) {
		if err := look(e.client.BindingsTo(ctx, e.Vhost, name)); err != nil {
			return fmt.Errorf("whether others have bound queue %q is not known: %w", name, err)
		}
	}
	found := e.bound(going, now)
	if found == nil {
		return nil
	}
	return found
}
