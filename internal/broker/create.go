package broker

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create creates objects that do not exist yet, policies last. If one exists already or anything
// fails, what this call made is removed again, and nothing else; what could not be removed is in a
// *NotUndoneError.
func (c *Client) Create(ctx context.Context, change Change) error {
	do := c.changer(change)
	do.onlyNew = true
	missing := topology.Diff(change.Wanted, change.Live).Create
	err := do.requireEmpty(ctx, judging(deadLetters, change.HeldIn...))
	if err == nil {
		err = do.createAll(ctx, missing)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, notUndone(do.undoCreate(ctx)))
}

// createAll writes policies last, since messages come as soon as they are there. Where there is no
// exchange, of which only one of two can be the creator, a policy has to tell who is.
func (c *changer) createAll(ctx context.Context, missing topology.Topology) error {
	if len(missing.Exchanges) == 0 {
		if err := c.writePolicies(ctx, missing.Policies); err != nil {
			return err
		}
		return c.create(ctx, missing)
	}
	if err := c.create(ctx, missing); err != nil {
		return err
	}
	return c.writePolicies(ctx, missing.Policies)
}

// create makes what is missing, but for the policies. The first exchange is made alone: of two that
// create one pipeline at the same time, only one gets past it, instead of each taking a part.
func (c *changer) create(ctx context.Context, t topology.Topology) error {
	exchanges := slices.Sorted(maps.Keys(t.Exchanges))
	first := exchanges[:min(1, len(exchanges))]
	createExchange := func(ctx context.Context, name string) error { return c.createExchange(ctx, name, t.Exchanges[name]) }
	if err := each(ctx, first, createExchange); err != nil {
		return err
	}
	if err := sideBySide(ctx, exchanges[len(first):], createExchange); err != nil {
		return err
	}
	createQueue := func(ctx context.Context, name string) error { return c.createQueue(ctx, name, t.Queues[name]) }
	if err := sideBySide(ctx, slices.Sorted(maps.Keys(t.Queues)), createQueue); err != nil {
		return err
	}
	return sideBySide(ctx, t.Bindings, c.createBinding)
}

// undoCreate removes what was created. The queues go with the proof: as soon as policies were
// written, consumers could reject into them. A queue that is kept keeps its exchanges.
func (c *changer) undoCreate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	undone := c.undo.rollback(ctx)
	kept, err := c.removeQueues(ctx, c.made, false)
	if len(kept) > 0 {
		return errors.Join(undone, err, &KeptError{Queues: kept})
	}
	return errors.Join(undone, err, c.exchanges.rollback(ctx))
}

func notUndone(err error) error {
	if err == nil {
		return nil
	}
	return &NotUndoneError{Err: err}
}
