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

// replace deletes exchanges or queues and creates them again, which is the only way to change them.
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

// replaceQueues replaces queues that are proved to be empty. Otherwise it fails with *KeptError and
// leaves all as they were.
func (e *execution) replaceQueues(ctx context.Context, s step) error {
	live := s
	live.queues = map[string]topology.Queue{}
	for name := range s.queues {
		live.queues[name] = e.All.Queues[name]
	}
	if err := e.removeIfEmpty(ctx, live); err != nil {
		return err
	}
	// A cancellation must not come between a queue's deletion and its return.
	ctx = context.WithoutCancel(ctx)
	return errors.Join(e.put(ctx, step{queues: s.queues}), e.rebind(ctx, s.bindings))
}

// replaceExchange gives the exchange back every binding it had, foreign ones included. That each of
// them may be made is found out before: making a binding that exists changes nothing. Those of others are noted
// first, since they go with the exchange.
func (e *execution) replaceExchange(ctx context.Context, name string, exchange topology.Exchange, bindings []topology.Binding) error {
	if err := e.rebind(ctx, bindings); err != nil {
		return err
	}
	if err := e.noteAll(ctx, bindings, name); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err := e.client.DeleteExchange(ctx, e.Vhost, name)
	if err != nil {
		err = fmt.Errorf("delete exchange %q: %w", name, err)
	}
	if err != nil && !broker.IsUnanswered(err) {
		return err
	}
	// Without an answer it may be gone all the same; if it is not, creating it again is refused.
	return errors.Join(err, e.bringBack(ctx, name, exchange, bindings))
}

// bringBack creates an exchange with the bindings that it had.
func (e *execution) bringBack(ctx context.Context, name string, exchange topology.Exchange, bindings []topology.Binding) error {
	return errors.Join(e.createExchange(ctx, name, exchange), e.rebind(ctx, fromFirst(name, bindings)))
}

// fromFirst sorts bindings so that nothing leads to the exchange before it leads on.
func fromFirst(exchange string, bindings []topology.Binding) []topology.Binding {
	leadsOn := func(b topology.Binding) bool { return b.Source == exchange }
	leadsTo := func(b topology.Binding) bool { return b.Source != exchange }
	return slices.Concat(slices.DeleteFunc(slices.Clone(bindings), leadsTo), slices.DeleteFunc(slices.Clone(bindings), leadsOn))
}
