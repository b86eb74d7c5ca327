package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// replaceQueues deletes queues and creates them again, because their properties cannot be changed. If one of them is not
// proved empty, it fails with *KeptError and leaves all of them unchanged.
func (e *execution) replaceQueues(ctx context.Context, s step) error {
	ends := map[end]bool{}
	for _, b := range s.bindings {
		// Without any of its bindings, an auto-delete exchange would delete itself.
		ends[end{e.Vhost, anExchange, b.Source}] = e.All.Exchanges[b.Source].AutoDelete
	}
	for name := range s.queues {
		ends[end{e.Vhost, aQueue, name}] = true
	}
	defer e.hold(ends)()
	bindings, err := e.present(ctx, s.bindings, s.queues)
	if err == nil {
		err = e.requireRights(ctx, topology.Topology{Bindings: bindings})
	}
	if err != nil {
		return err
	}
	if err = e.note(ctx, "", s.bindings); err == nil {
		err = e.removeIfEmpty(ctx, s)
	}
	return errors.Join(err, e.deleteNotes(ctx, "", s.bindings))
}

// createAgain creates a deleted object again, even after a cancellation: the new one or, if the broker refuses it, the old one.
func (e *execution) createAgain(ctx context.Context, wanted, old object) error {
	create := func(o object) func(context.Context) error {
		return func(ctx context.Context) error {
			if _, err := e.put(ctx, o); err != nil {
				return fmt.Errorf("create %q again: %w", o.name, err)
			}
			return nil
		}
	}
	err := e.repeat(context.WithoutCancel(ctx), broker.IsUnanswered, create(wanted))
	if err == nil {
		return nil
	}
	return errors.Join(err, notUndone(e.insist(ctx, create(old))))
}

// present leaves out the bindings to the queues that somebody has deleted meanwhile.
func (e *execution) present(
	ctx context.Context, bindings []topology.Binding, queues map[string]topology.Queue,
) ([]topology.Binding, error) {
	there := map[string]topology.Binding{}
	for name := range queues {
		now, err := e.client.BindingsTo(ctx, e.Vhost, name)
		if err != nil {
			return nil, err
		}
		maps.Copy(there, byText(now))
	}
	return only(bindings, func(b topology.Binding) bool { return has(there, b.String()) }), nil
}

// replaceExchange replaces an exchange and restores all its bindings, including those that others made. While the exchange is
// missing, dead letters of classic queues for it are lost, and published messages are unroutable.
func (e *execution) replaceExchange(ctx context.Context, wanted object) error {
	defer e.HoldExchange(e.Vhost, wanted.name)()
	bindings, err := e.noteAll(ctx, wanted.name)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	old := exchangeOf(wanted.name, e.All.Exchanges[wanted.name])
	err = e.delete(ctx, old)
	if err != nil && !broker.IsUnanswered(err) {
		return errors.Join(err, e.deleteNotes(ctx, wanted.name, bindings))
	}
	// Without an answer, the exchange can be deleted. If it still exists, it is not created.
	return errors.Join(err, e.createAgain(ctx, wanted, old), e.bindBack(ctx, wanted.name, bindings))
}

// noteAll notes all bindings of an exchange, and lists those that are there in the end. First it checks that each one can be made: to
// make an existing binding changes nothing.
func (e *execution) noteAll(ctx context.Context, exchange string) (now []topology.Binding, err error) {
	noted := map[string]topology.Binding{}
	defer func() {
		gone := slices.Collect(maps.Values(without(noted, byText(now)))) // after a failure, all of them
		err = errors.Join(err, e.deleteNotes(ctx, exchange, gone))
	}()
	for {
		from, err := e.client.BindingsFrom(ctx, e.Vhost, exchange)
		if err != nil {
			return nil, err
		}
		to, err := e.client.BindingsToExchange(ctx, e.Vhost, exchange)
		if err != nil {
			return nil, err
		}
		now = slices.Concat(from, to)
		added := slices.Collect(maps.Values(without(byText(now), noted)))
		if len(added) == 0 {
			return now, nil
		}
		if err := e.requireReadable(added); err != nil {
			return nil, err
		}
		if err := each(ctx, added, e.restore); err != nil {
			return nil, err
		}
		maps.Copy(noted, byText(added))
		if err := e.note(ctx, exchange, added); err != nil {
			return nil, err
		}
	}
}

func byText(bindings []topology.Binding) map[string]topology.Binding {
	all := make(map[string]topology.Binding, len(bindings))
	for _, b := range bindings {
		all[b.String()] = b
	}
	return all
}

// note records on the broker which bindings of others are deleted with an exchange. Otherwise only this process knows
// them, and it can be killed.
func (e *execution) note(ctx context.Context, exchange string, bindings []topology.Binding) error {
	for _, b := range bindings {
		if e.owns(b) {
			continue
		}
		if err := e.client.Bind(ctx, e.Vhost, e.Notes.Of(b, exchange)); err != nil {
			return fmt.Errorf("note binding %q before it is deleted: %w", b, err)
		}
	}
	return nil
}

// deleteNotes deletes the notes of bindings, except those that could not be restored.
func (e *execution) deleteNotes(ctx context.Context, exchange string, bindings []topology.Binding) error {
	return e.insist(ctx, func(ctx context.Context) error {
		var failed []error
		for _, b := range bindings {
			if !e.owns(b) && !e.unrestored[b.String()] {
				failed = append(failed, e.client.Unbind(ctx, e.Vhost, e.Notes.Of(b, exchange)))
			}
		}
		return errors.Join(failed...)
	})
}

// bindBack restores the bindings of an exchange, and deletes the notes of those that it has restored.
func (e *execution) bindBack(ctx context.Context, exchange string, bindings []topology.Binding) error {
	leadsOn := func(b topology.Binding) bool { return b.Source == exchange }
	// Bindings to the exchange come last, so that it never gets messages without a target.
	ordered := slices.Concat(only(bindings, leadsOn), slices.DeleteFunc(slices.Clone(bindings), leadsOn))
	return errors.Join(e.restoreAll(ctx, ordered), e.deleteNotes(ctx, exchange, bindings))
}

// noted returns the bindings that a killed apply left unbound, from their notes, if they matter.
func (c Change) noted(matters func(topology.Binding) bool) []topology.Binding {
	var found []topology.Binding
	for _, note := range c.Live.Bindings {
		if b, isNote := c.Notes.Noted(note); isNote && matters(b) && !slices.ContainsFunc(c.All.Bindings, b.Equal) {
			found = append(found, b)
		}
	}
	return found
}

// restore makes a binding again, unless its source or destination is deleted.
func (e *execution) restore(ctx context.Context, b topology.Binding) error {
	if err := e.rebind(ctx, []topology.Binding{b}); !broker.IsNotFound(err) {
		return err
	}
	return nil
}
