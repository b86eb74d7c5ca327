package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// trialSuffix ends the name of an object that exists for a trial only.
const trialSuffix = ".retry-trial"

// try creates the new objects of a re-creation under other names, and deletes them at once. So the broker refuses wrong
// arguments, missing permissions and bindings that a new type cannot have before anything is deleted.
func (e *execution) try(ctx context.Context, s step) error {
	var failed []error
	for _, o := range s.objects() {
		failed = append(failed, e.tryOne(ctx, o))
	}
	return errors.Join(failed...)
}

// tryBindings makes the bindings from an exchange from its trial, which has the new type.
func (e *execution) tryBindings(ctx context.Context, name, trial string) error {
	for _, b := range e.All.Bindings {
		if b.Source != name {
			continue
		}
		was := b.String()
		if b.Source = trial; b.ToExchange && b.Destination == name {
			b.Destination = trial
		}
		if err := e.client.Bind(ctx, e.Vhost, b); err != nil && !broker.IsNotFound(err) && !broker.IsUnauthorized(err) {
			return fmt.Errorf("the new type cannot have the binding %q: %w", was, named(err))
		}
	}
	return nil
}

// tryOne tries an object. If the user has no right to the name of a trial, it tells nothing about an object that names no exchange, or
// only one of the owner's: to create that one again takes no other permissions than the owner needs anyway.
func (e *execution) tryOne(ctx context.Context, o object) error {
	trial := o.like(trialName(o.name))
	create := func() error { return named(e.declare(trial)(ctx)) }
	remove := func(ctx context.Context) error { return e.remove(ctx, trial) }
	err := create()
	if broker.IsInequivalent(err) { // an apply that was killed has left it
		err = errors.Join(remove(ctx), create())
	}
	if broker.IsUnauthorized(err) {
		exchange := cmp.Or(o.referredIn(o.alone), o.referredIn(e.All.Topology))
		if exchange == "" || has(e.Wanted.Exchanges, exchange) {
			return nil
		}
		return fmt.Errorf("%q names the exchange %q, so it is tried before it is deleted: the user needs configure and read on %q, "+
			"and write on %q: %w", o.name, exchange, trial.name, exchange, err)
	}
	if err == nil && o.kind == anExchange && o.alone.Exchanges[o.name].Type != e.All.Exchanges[o.name].Type {
		err = e.tryBindings(ctx, o.name, trial.name)
	}
	if broker.IsUnanswered(err) {
		_ = pause(context.WithoutCancel(ctx), e.times.Patience) // it can still come
	}
	if err = errors.Join(err, e.insist(ctx, remove)); err != nil {
		return fmt.Errorf("re-create %q: %w", o.name, err)
	}
	return nil
}

// rehearse fails if the user may not create queues, or bind queues to direct exchanges. After the policy, a failure costs half a minute.
// Brokers check rights first. Then they refuse the queue for a wrong argument, and a binding to a missing queue. A binding to another
// queue has a key of its own, and goes at once.
func (e *execution) rehearse(ctx context.Context, s step) error {
	return forEachParallel(ctx, s.objects(), func(ctx context.Context, trial object) error {
		for name, queue := range trial.alone.Queues {
			queue.Arguments = maps.Clone(queue.Arguments)
			queue.Arguments["x-max-length"] = int64(-1)
			trial = queueOf(name, queue)
		}
		for _, b := range trial.alone.Bindings {
			trial = bindingOf(topology.Binding{Source: b.Source, Destination: b.Destination, RoutingKey: trialSuffix})
		}
		switch err := e.declare(trial)(ctx); {
		case broker.IsUnauthorized(err):
			return err
		case trial.kind == aBinding && (err == nil || broker.IsUnanswered(err)):
			return e.insist(ctx, func(ctx context.Context) error { return e.remove(ctx, trial) })
		}
		return nil
	})
}

// trialName is the name of an object's trial.
func trialName(name string) string {
	const maxName = 255 // bytes, of exchanges and queues
	return strings.ToValidUTF8(name[:min(len(name), maxName-len(trialSuffix))], "") + trialSuffix
}

// named makes an error of a trial one about the object itself.
func named(err error) error {
	answer, ok := errors.AsType[*broker.Error](err)
	if !ok {
		return err
	}
	about := *answer
	about.Path, about.Reason = strings.ReplaceAll(about.Path, trialSuffix, ""), strings.ReplaceAll(about.Reason, trialSuffix, "")
	return &about
}

// requireRights fails if the user may not delete the objects, or not restore the bindings. To declare an object as it is takes the same
// permissions as to delete it (seen on 3.10.8, 4.0.5 and 4.3.6).
func (e *execution) requireRights(ctx context.Context, t topology.Topology) error {
	return forEachParallel(ctx, objectsOf(t), func(ctx context.Context, o object) error {
		if _, err := e.put(ctx, o); broker.IsUnauthorized(err) {
			return err
		}
		return nil
	})
}
