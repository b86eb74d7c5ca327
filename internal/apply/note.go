package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// note writes down on the broker that a binding of somebody else's is deleted, before it is. Only this
// process knows how to put it back otherwise, and it may be killed.
func (e *execution) note(ctx context.Context, b topology.Binding) error {
	if e.NoteOf == nil || slices.ContainsFunc(e.Live.Bindings, b.Equal) {
		return nil
	}
	note := e.NoteOf(b)
	e.notes[b.String()] = note
	if err := e.client.Bind(ctx, e.Vhost, note); err != nil {
		return fmt.Errorf("note binding %q before it is deleted: %w", b, err)
	}
	return nil
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

// restoreNoted puts back what an apply that was killed has left unbound, as far as both ends are there.
func (e *execution) restoreNoted(ctx context.Context) error {
	if e.Noted == nil {
		return nil
	}
	for _, note := range slices.Clone(e.Live.Bindings) {
		b, isNote := e.Noted(note)
		if !isNote {
			continue
		}
		_, isOwnSource := e.Live.Exchanges[b.Source]
		_, isOwnQueue := e.Live.Queues[b.Destination]
		_, hasSource := e.All.Exchanges[b.Source]
		_, hasQueue := e.All.Queues[b.Destination]
		if hasQueue && (isOwnSource || !isOwnQueue) {
			return fmt.Errorf("binding %q notes one that the provider does not delete, or no longer: "+
				"restore %q by hand if it is missing, and delete the note", note, b)
		}
		if hasSource && hasQueue {
			if err := e.client.Bind(ctx, e.Vhost, b); err != nil {
				return fmt.Errorf("restore binding %q: %w", b, err)
			}
			e.All.Bindings = append(slices.Clone(e.All.Bindings), b)
		}
		if err := e.client.Unbind(ctx, e.Vhost, note); err != nil {
			return fmt.Errorf("delete the note of binding %q: %w", b, err)
		}
		gone := topology.Topology{Bindings: []topology.Binding{note}}
		e.All.Topology, e.Live = e.All.Without(gone), e.Live.Without(gone)
	}
	return nil
}
