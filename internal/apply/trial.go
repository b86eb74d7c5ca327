package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// trialSuffix ends the name of an object that exists for a trial only.
const trialSuffix = ".retry-trial"

// try creates the new objects of a re-creation under other names, and deletes them at once. So the broker refuses wrong
// arguments, missing permissions and bindings that a new type cannot have before anything is deleted.
func (e *execution) try(ctx context.Context, s step) error {
	removeQueue := func(ctx context.Context, vhost, name string) error { return e.client.DeleteQueue(ctx, vhost, name, "") }
	var failed []error
	for name, exchange := range s.exchanges {
		old := e.All.Exchanges[name]
		t := trial[topology.Exchange]{
			name: name, references: cmp.Or(referred(exchange.Arguments), referred(old.Arguments)), object: exchange,
			arguments: func(x *topology.Exchange) *topology.Arguments { return &x.Arguments },
			put:       e.client.PutExchange, remove: e.client.DeleteExchange,
		}
		if exchange.Type != old.Type {
			t.use = func(ctx context.Context, trial string) error { return e.tryBindings(ctx, name, trial) }
		}
		failed = append(failed, t.run(ctx, e))
	}
	for name, queue := range s.queues {
		failed = append(failed, trial[topology.Queue]{
			name: name, references: cmp.Or(referred(queue.Arguments), referred(e.All.Queues[name].Arguments)), object: queue,
			arguments: func(q *topology.Queue) *topology.Arguments { return &q.Arguments },
			put:       e.client.PutQueue, remove: removeQueue,
		}.run(ctx, e))
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

// trial is the trial of one object.
type trial[T any] struct {
	name string
	// references is the exchange that the new or else the old object names, or "".
	references string
	object     T
	arguments  func(*T) *topology.Arguments
	put        func(ctx context.Context, vhost, name string, object T) (bool, error)
	remove     func(ctx context.Context, vhost, name string) error
	// use, if set, tries what needs the object.
	use func(ctx context.Context, trial string) error
}

// run tries the object. If the user has no right to the name of a trial, it tells nothing about an object that names no exchange, or
// only one of the owner's: to create that one again takes no other permissions than the owner needs anyway.
func (t trial[T]) run(ctx context.Context, e *execution) error {
	name := strings.ToValidUTF8(t.name[:min(len(t.name), maxName-len(trialSuffix))], "") + trialSuffix
	create := func() error {
		_, err := t.put(ctx, e.Vhost, name, t.object)
		return named(err)
	}
	err := create()
	if broker.IsInequivalent(err) { // an apply that was killed has left it
		err = errors.Join(t.remove(ctx, e.Vhost, name), create())
	}
	if broker.IsUnauthorized(err) {
		if _, own := e.Wanted.Exchanges[t.references]; own || t.references == "" {
			return nil
		}
		of := t.arguments(&t.object)
		*of = without(*of, references)
		if create() != nil {
			return fmt.Errorf("%q names the exchange %q, so it is tried before it is deleted: the user needs configure and read on %q, "+
				"and write on %q: %w", t.name, t.references, name, t.references, err)
		}
		err = fmt.Errorf("the user needs read on %q and write on %q: %w", t.name, t.references, err)
	}
	if err == nil && t.use != nil {
		err = t.use(ctx, name)
	}
	if broker.IsUnanswered(err) {
		_ = pause(context.WithoutCancel(ctx), e.times.Patience) // it can still come
	}
	removed := e.insist(ctx, func(ctx context.Context) error { return t.remove(ctx, e.Vhost, name) })
	if err = errors.Join(err, removed); err != nil {
		return fmt.Errorf("re-create %q: %w", t.name, err)
	}
	return nil
}

// maxName limits the names of exchanges and queues, in bytes.
const maxName = 255

// references are the arguments that name an exchange. To declare an object with one of them, the user needs the permissions read on the
// object and write on the exchange.
var references = map[string]bool{"x-dead-letter-exchange": true, "alternate-exchange": true}

// referred returns the exchange that the arguments name, or "".
func referred(arguments topology.Arguments) string {
	for argument := range references {
		if name, is := arguments[argument].(string); is {
			return name
		}
	}
	return ""
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

// right is a permission of the user, and a request that takes it and changes nothing.
type right struct {
	needs   string
	declare func(context.Context) error
}

// requireRights fails if the user may not delete the objects, or not restore the bindings. To declare an object as it is takes the same
// permissions as to delete it (seen on 3.10.8, 4.0.5 and 4.3.6).
func (e *execution) requireRights(ctx context.Context, t topology.Topology) error {
	var rights []right
	for name, exchange := range t.Exchanges {
		rights = append(rights, right{fmt.Sprintf("configure on exchange %q", name), func(ctx context.Context) error {
			_, err := e.client.PutExchange(ctx, e.Vhost, name, exchange)
			return err
		}})
	}
	for name, queue := range t.Queues {
		rights = append(rights, right{fmt.Sprintf("configure on queue %q", name), func(ctx context.Context) error {
			_, err := e.client.PutQueue(ctx, e.Vhost, name, queue)
			return err
		}})
	}
	for _, b := range t.Bindings {
		rights = append(rights, right{fmt.Sprintf("read on %q and write on %q", b.Source, b.Destination), func(ctx context.Context) error {
			return e.client.Bind(ctx, e.Vhost, b)
		}})
	}
	return forEachParallel(ctx, rights, func(ctx context.Context, r right) error {
		if err := r.declare(ctx); broker.IsUnauthorized(err) {
			return fmt.Errorf("the user needs %s: %w", r.needs, err)
		}
		return nil
	})
}
