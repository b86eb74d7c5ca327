package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create creates objects that do not exist yet, policies last. If one exists already or anything
// fails, what this call made is removed again, and nothing else. If that would lose messages, all of
// it stays; what stays, for whatever reason, is in a *NotUndoneError.
func (a *Applier) Create(ctx context.Context, change Change) error {
	do := a.changer(change)
	do.onlyNew = true
	missing := topology.Diff(change.Wanted, change.Live).Create
	err := do.requireEmpty(ctx, checksOf(pendingDeadLetters, change.HeldIn...))
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
	if err := forEachParallel(ctx, exchanges[len(first):], createExchange); err != nil {
		return err
	}
	createQueue := func(ctx context.Context, name string) error { return c.createQueue(ctx, name, t.Queues[name]) }
	if err := forEachParallel(ctx, slices.Sorted(maps.Keys(t.Queues)), createQueue); err != nil {
		return err
	}
	return forEachParallel(ctx, t.Bindings, c.createBinding)
}

// undoCreate removes what was created as Remove does, since consumers reject as soon as a policy is
// written. So all of it stays if messages would be lost: what is held can be imported, sent back and
// consumed only as long as the definition, the ways back and the policies are there.
func (c *changer) undoCreate(ctx context.Context) error {
	if c.made.Empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	if err := c.countRejected(ctx); err != nil {
		return err
	}
	all, err := c.client.List(ctx, c.Vhost)
	if err != nil {
		return fmt.Errorf("nothing of what was made is removed again: %w", err)
	}
	removal := c.Change
	removal.All, removal.Live, removal.HeldIn = all, c.made, heldBehind(c.made.Policies, all.Queues)
	undo := c.changer(removal)
	undo.bestEffort = true
	err = undo.removeUnlessHeld(ctx)
	var kept *KeptError
	if errors.As(err, &kept) {
		return fmt.Errorf("all that was made stays, since removing it would lose what these queues hold:\n%w", err)
	}
	return errors.Join(append(undo.unanswered, err)...)
}

// countRejected waits until the broker counts what was rejected since the policies were written: a removal
// that begins without knowing of it unbinds the inbox, and what follows goes to the failed queue.
func (c *changer) countRejected(ctx context.Context) error {
	if len(c.made.Policies) == 0 {
		return nil
	}
	return pause(ctx, c.times.Settle)
}

// heldBehind lists the quorum queues that would lose the dead letters that they hold with the policies.
func heldBehind(policies map[string]topology.Policy, queues map[string]topology.Queue) []string {
	var held []string
	for name, queue := range queues {
		for _, policy := range policies {
			applies, err := policy.AppliesTo(name, queue.Type)
			if err == nil && applies && queue.Type == topology.Quorum && policy.Definition["dead-letter-strategy"] == topology.AtLeastOnce {
				held = append(held, name)
			}
		}
	}
	return held
}

func notUndone(err error) error {
	if err == nil {
		return nil
	}
	return &NotUndoneError{Err: err}
}
