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

// replace deletes exchanges or queues and creates them again, because their properties cannot be changed.
func (e *execution) replace(ctx context.Context, s step) error {
	for _, name := range slices.Sorted(maps.Keys(s.exchanges)) {
		if err := e.replaceExchange(ctx, name, s.exchanges[name], s.bindings); err != nil {
			return err
		}
	}
	if len(s.queues) == 0 {
		return nil
	}
	return e.replaceQueues(ctx, s)
}

// replaceQueues replaces queues that are proved empty. Otherwise it fails with *KeptError and leaves all of them
// unchanged.
func (e *execution) replaceQueues(ctx context.Context, s step) error {
	live := s
	live.queues = map[string]topology.Queue{}
	for name := range s.queues {
		live.queues[name] = e.All.Queues[name]
	}
	if err := e.note(ctx, "", s.bindings); err != nil {
		return err
	}
	err := e.removeIfEmpty(ctx, live)
	// A cancellation must not come between a queue's deletion and its re-creation.
	ctx = context.WithoutCancel(ctx)
	if err == nil {
		err = errors.Join(e.put(ctx, step{queues: s.queues}), e.rebind(ctx, s.bindings))
	}
	if kept := (*KeptError)(nil); err == nil || errors.As(err, &kept) {
		err = errors.Join(err, e.deleteNotes(ctx, "", s.bindings))
	}
	return err
}

// replaceExchange replaces an exchange and restores all its bindings, including those that others made. First it checks
// that each binding can be made: to make an existing binding changes nothing.
func (e *execution) replaceExchange(ctx context.Context, name string, exchange topology.Exchange, bindings []topology.Binding) error {
	if err := each(ctx, bindings, e.restore); err != nil {
		return err
	}
	if err := e.note(ctx, name, bindings); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err := e.removeExchange(ctx, name)
	if err != nil && !broker.IsUnanswered(err) {
		return err
	}
	// Without an answer, the exchange can be deleted. If it still exists, its creation is refused.
	return errors.Join(err, e.bringBack(ctx, name, exchange, bindings))
}

// note records on the broker which bindings of others are deleted with an exchange. Otherwise only this process knows
// them, and it can be killed.
func (e *execution) note(ctx context.Context, exchange string, bindings []topology.Binding) error {
	for _, b := range bindings {
		if e.owns(b) {
			continue
		}
		if err := e.client.Bind(ctx, e.Vhost, e.Notes().Of(b, exchange)); err != nil {
			return fmt.Errorf("note binding %q before it is deleted: %w", b, err)
		}
	}
	return nil
}

// deleteNotes deletes the notes of bindings that are there again.
func (e *execution) deleteNotes(ctx context.Context, exchange string, bindings []topology.Binding) error {
	var failed []error
	for _, b := range bindings {
		if !e.owns(b) {
			failed = append(failed, e.client.Unbind(ctx, e.Vhost, e.Notes().Of(b, exchange)))
		}
	}
	return errors.Join(failed...)
}

// bringBack creates an exchange again with its bindings, and deletes the notes of restored bindings.
func (e *execution) bringBack(ctx context.Context, name string, exchange topology.Exchange, bindings []topology.Binding) error {
	failed := []error{e.createExchange(ctx, name, exchange)}
	for _, b := range fromFirst(name, bindings) {
		err := e.rebind(ctx, []topology.Binding{b})
		if err == nil {
			err = e.deleteNotes(ctx, name, []topology.Binding{b})
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// fromFirst sorts bindings from the exchange before bindings to it, so that it never gets messages without a target.
func fromFirst(exchange string, bindings []topology.Binding) []topology.Binding {
	leadsOn := func(b topology.Binding) bool { return b.Source == exchange }
	leadsTo := func(b topology.Binding) bool { return b.Source != exchange }
	return slices.Concat(slices.DeleteFunc(slices.Clone(bindings), leadsTo), slices.DeleteFunc(slices.Clone(bindings), leadsOn))
}

// noted returns the bindings that a killed apply left unbound, from their notes. It leaves out bindings that do not
// touch the owner's objects, because no apply deletes them.
func (c Change) noted() []topology.Binding {
	var found []topology.Binding
	for _, note := range c.Live.Bindings {
		b, isNote := c.Notes().Noted(note)
		_, from := c.Wanted.Exchanges[b.Source]
		if isNote && (from || leadsInto(b, c.Wanted)) && !slices.ContainsFunc(c.All.Bindings, b.Equal) {
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

func (c Change) isNote(b topology.Binding) bool {
	_, is := c.Notes().Noted(b)
	return is
}
