package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// trialSuffix ends the name of an object that exists for a trial only.
const trialSuffix = ".retry-trial"

// try creates the new objects of a re-creation under other names, and deletes them at once. So the broker refuses wrong
// arguments and missing permissions before anything is deleted.
func (e *execution) try(ctx context.Context, s step) error {
	for _, name := range slices.Sorted(maps.Keys(s.exchanges)) {
		exchange := s.exchanges[name]
		if err := e.tryOne(ctx, name, exchange.Arguments, func(ctx context.Context, trial string, arguments topology.Arguments) error {
			exchange.Arguments = arguments
			_, err := e.client.PutExchange(ctx, e.Vhost, trial, exchange)
			return err
		}, e.client.DeleteExchange); err != nil {
			return fmt.Errorf("create exchange %q anew: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		queue := s.queues[name]
		if err := e.tryOne(ctx, name, queue.Arguments, func(ctx context.Context, trial string, arguments topology.Arguments) error {
			queue.Arguments = arguments
			_, err := e.client.PutQueue(ctx, e.Vhost, trial, queue)
			return err
		}, func(ctx context.Context, vhost, trial string) error {
			return e.client.DeleteQueue(ctx, vhost, trial, "")
		}); err != nil {
			return fmt.Errorf("create queue %q anew: %w", name, err)
		}
	}
	return nil
}

// tryOne tries one object. It tells nothing if the user's permissions or a limit do not allow a trial.
func (e *execution) tryOne(
	ctx context.Context, name string, arguments topology.Arguments,
	put func(ctx context.Context, trial string, arguments topology.Arguments) error,
	remove func(ctx context.Context, vhost, trial string) error,
) error {
	trial := name + trialSuffix
	if len(trial) > maxName {
		return nil
	}
	err := named(put(ctx, trial, arguments))
	if broker.IsInequivalent(err) { // an apply that was killed has left it
		err = errors.Join(remove(ctx, e.Vhost, trial), named(put(ctx, trial, arguments)))
	}
	if broker.IsUnauthorized(err) {
		other := referred(arguments)
		//nolint:nilerr // whether the user can create the object shows when it is re-created
		if other == "" || put(ctx, trial, without(arguments, map[string]bool{deadLetterExchange: true, alternateExchange: true})) != nil {
			return nil
		}
		err = fmt.Errorf("the user needs the permissions read on %q and write on %q: %w", name, other, err)
	}
	removed := e.insist(ctx, func(ctx context.Context) error { return remove(ctx, e.Vhost, trial) })
	if answer, ok := errors.AsType[*broker.Error](err); ok && limited.MatchString(answer.Reason) {
		return removed
	}
	return errors.Join(err, removed)
}

// maxName limits the names of exchanges and queues, in bytes.
const maxName = 255

// limited matches the answers of brokers that have as many queues or exchanges as a limit allows. The re-creation deletes one first.
var limited = regexp.MustCompile(`limit .*is reached$`)

// Arguments that name an exchange. Whoever declares a queue or an exchange with one needs read on it, and write on that exchange.
const (
	deadLetterExchange = "x-dead-letter-exchange"
	alternateExchange  = "alternate-exchange"
)

func referred(arguments topology.Arguments) string {
	for _, argument := range []string{deadLetterExchange, alternateExchange} {
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
