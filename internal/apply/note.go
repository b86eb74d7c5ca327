package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// noExchange goes with a binding that is deleted alone.
const noExchange = ""

// note writes down on the broker that a binding of somebody else's is deleted, perhaps with an exchange, before it
// is. Only this process knows how to put it back otherwise, and it may be killed. What the binding alone would route
// is caught from then on.
func (e *execution) note(ctx context.Context, b topology.Binding, going string) error {
	if e.NoteOf == nil || slices.ContainsFunc(e.Live.Bindings, b.Equal) {
		return nil
	}
	if err := e.catch(ctx, b); err != nil {
		return err
	}
	note := e.NoteOf(b, going)
	e.notes[b.String()] = note
	if err := e.client.Bind(ctx, e.Vhost, note); err != nil {
		return fmt.Errorf("note binding %q before it is deleted: %w", b, err)
	}
	return nil
}

// noteAll notes the bindings of an exchange that is deleted.
func (e *execution) noteAll(ctx context.Context, bindings []topology.Binding, going string) error {
	return each(ctx, bindings, func(ctx context.Context, b topology.Binding) error { return e.note(ctx, b, going) })
}

// forget deletes the note of a binding that is back, or whose queue is gone.
func (e *execution) forget(ctx context.Context, b topology.Binding) error {
	note, noted := e.notes[b.String()]
	if !noted {
		return nil
	}
	if err := e.client.Unbind(ctx, e.Vhost, note); err != nil {
		return fmt.Errorf("delete the note of binding %q: %w", b, err)
	}
	delete(e.notes, b.String())
	return nil
}

// forgetQueue deletes the notes of bindings to a queue that is gone.
func (e *execution) forgetQueue(ctx context.Context, queue string) error {
	for _, b := range e.All.Bindings {
		if b.ToExchange || b.Destination != queue {
			continue
		}
		if err := e.forget(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// restoreLeft ends what an apply that was killed has begun.
func (e *execution) restoreLeft(ctx context.Context) error {
	if err := e.restoreNoted(ctx); err != nil {
		return err
	}
	return e.releaseLeft(ctx)
}

// restoreNoted puts back what an apply that was killed has left unbound, as far as both ends are there or wanted.
func (e *execution) restoreNoted(ctx context.Context) error {
	if e.Noted == nil {
		return nil
	}
	for _, note := range slices.Clone(e.Live.Bindings) {
		b, isNote := e.Noted(note)
		if !isNote {
			continue
		}
		if err := e.restore(ctx, b); err != nil {
			return err
		}
		if err := e.client.Unbind(ctx, e.Vhost, note); err != nil {
			return fmt.Errorf("delete the note of binding %q: %w", b, err)
		}
		gone := topology.Topology{Bindings: []topology.Binding{note}}
		e.All.Topology, e.Live = e.All.Without(gone), e.Live.Without(gone)
	}
	return nil
}

// restore puts back a binding of which there is a note, unless an end of it is gone for good, or is nothing that an apply
// unbinds: a queue that somebody made in the place of one that was deleted, or what a forged note names. An end that the
// killed apply was about to create again is created before: the note is deleted afterwards.
func (e *execution) restore(ctx context.Context, b topology.Binding) error {
	ends := endsOf(b, topology.Diff(e.Wanted, e.Live).Create)
	own, all := topology.Merge(e.Live, ends), topology.Merge(e.All.Topology, ends)
	if !hasSource(b, all) || !hasDestination(b, all) {
		return nil
	}
	if !hasSource(b, own) && !hasDestination(b, own) && !e.leadsToDeclared(b) {
		return nil
	}
	if err := e.put(ctx, step{exchanges: ends.Exchanges, queues: ends.Queues}); err != nil {
		return err
	}
	if err := e.client.Bind(ctx, e.Vhost, b); err != nil {
		return fmt.Errorf("restore binding %q: %w", b, err)
	}
	e.All.Topology, e.Live = topology.Merge(all, topology.Topology{Bindings: []topology.Binding{b}}), own
	return nil
}

// leadsToDeclared reports whether a binding leads to a queue that the owner once declared. An apply that was killed may have
// unbound it, also if it is somebody else's meanwhile.
func (e *execution) leadsToDeclared(b topology.Binding) bool {
	return !b.ToExchange && e.Declared != nil && e.Declared(e.All.Queues[b.Destination])
}

// endsOf are those of the exchanges and queues that the binding begins or ends at.
func endsOf(b topology.Binding, t topology.Topology) topology.Topology {
	ends := topology.New()
	if hasSource(b, t) {
		ends.Exchanges[b.Source] = t.Exchanges[b.Source]
	}
	switch {
	case !hasDestination(b, t):
	case b.ToExchange:
		ends.Exchanges[b.Destination] = t.Exchanges[b.Destination]
	default:
		ends.Queues[b.Destination] = t.Queues[b.Destination]
	}
	return ends
}

func hasSource(b topology.Binding, t topology.Topology) bool {
	_, has := t.Exchanges[b.Source]
	return has
}

func hasDestination(b topology.Binding, t topology.Topology) bool {
	_, has := t.Queues[b.Destination]
	if b.ToExchange {
		_, has = t.Exchanges[b.Destination]
	}
	return has
}
