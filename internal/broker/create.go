package broker

import (
	"context"
	"errors"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create creates objects that do not exist yet, policies last. If one exists already or anything
// fails, what this call made is removed again, and nothing else; what could not be removed is in a
// *NotUndoneError.
func (c *Client) Create(ctx context.Context, change Change) error {
	do := c.changer(change)
	do.onlyNew = true
	missing := topology.Diff(change.Wanted, change.Live).Create
	err := do.create(ctx, missing)
	if err == nil {
		err = do.writePolicies(ctx, missing.Policies)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, notUndone(do.undoCreate(ctx)))
}

// create makes what is missing, but for the policies.
func (c *changer) create(ctx context.Context, t topology.Topology) error {
	if err := eachByName(ctx, t.Exchanges, c.createExchange); err != nil {
		return err
	}
	if err := eachByName(ctx, t.Queues, c.createQueue); err != nil {
		return err
	}
	return each(ctx, t.Bindings, c.createBinding)
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
