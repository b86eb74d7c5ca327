package apply

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// trialSuffix ends the name of an object that exists for a trial only.
const trialSuffix = ".retry-trial"

// try creates the new objects of a re-creation under other names, and deletes them at once. So the broker refuses wrong
// arguments and missing permissions before anything is deleted.
func (e *execution) try(ctx context.Context, s step) error {
	removeQueue := func(ctx context.Context, vhost, name string) error { return e.client.DeleteQueue(ctx, vhost, name, "") }
	var failed []error
	for name, exchange := range s.exchanges {
		arguments := func(x *topology.Exchange) *topology.Arguments { return &x.Arguments }
		failed = append(failed, tryOne(ctx, e, name, exchange, arguments, e.client.PutExchange, e.client.DeleteExchange))
	}
	for name, queue := range s.queues {
		arguments := func(q *topology.Queue) *topology.Arguments { return &q.Arguments }
		failed = append(failed, tryOne(ctx, e, name, queue, arguments, e.client.PutQueue, removeQueue))
	}
	return errors.Join(failed...)
}

// tryOne tries one object. It tells nothing if the user's permissions or a limit do not allow a trial.
func tryOne[T any](
	ctx context.Context, e *execution, name string, object T, arguments func(*T) *topology.Arguments,
	put func(ctx context.Context, vhost, name string, object T) (bool, error), remove func(ctx context.Context, vhost, name string) error,
) error {
	trial := name + trialSuffix
	if len(trial) > maxName {
		return nil
	}
	create := func() error {
		_, err := put(ctx, e.Vhost, trial, object)
		return named(err)
	}
	err := create()
	if broker.IsInequivalent(err) { // an apply that was killed has left it
		err = errors.Join(remove(ctx, e.Vhost, trial), create())
	}
	if broker.IsUnauthorized(err) {
		of := arguments(&object)
		other := referred(*of)
		*of = without(*of, map[string]bool{deadLetterExchange: true, alternateExchange: true})
		//nolint:nilerr // whether the user can create the object shows when it is re-created
		if other == "" || create() != nil {
			return nil
		}
		err = fmt.Errorf("the user needs the permissions read on %q and write on %q: %w", name, other, err)
	}
	removed := e.insist(ctx, func(ctx context.Context) error { return remove(ctx, e.Vhost, trial) })
	if answer, ok := errors.AsType[*broker.Error](err); ok && limited.MatchString(answer.Reason) {
		return removed
	}
	if err = errors.Join(err, removed); err != nil {
		return fmt.Errorf("create %q anew: %w", name, err)
	}
	return nil
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
