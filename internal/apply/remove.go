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

// Remove deletes every object of the owner, or none: if messages would be lost, everything is put
// back and *KeptError says where they are. What could not be put back is in a *NotUndoneError.
func (a *Applier) Remove(ctx context.Context, change Change) error {
	if err := a.changer(change).removeUnlessHeld(ctx); err != nil {
		return err
	}
	return a.stillSees(ctx, change.Vhost)
}

func (c *changer) removeUnlessHeld(ctx context.Context) error {
	everything := checksOf(pendingDeadLetters, c.HeldIn...)
	maps.Copy(everything, c.contentChecks(c.Live.Queues))
	return c.untilDrained(func() error { return c.removeOrRestore(ctx, everything) })
}

// stillSees is an error if the vhost is there but may not be seen any more: to such a user everything
// looks as if it were deleted.
func (a *Applier) stillSees(ctx context.Context, vhost string) error {
	_, err := a.client.List(ctx, vhost)
	if !broker.IsNotFound(err) {
		return err
	}
	if gone, goneErr := a.client.VhostGone(ctx, vhost); goneErr != nil || !gone {
		return fmt.Errorf("whether everything was deleted is not known, since the vhost may not be seen any more: %w", errors.Join(err, goneErr))
	}
	return nil
}

func (c *changer) removeOrRestore(ctx context.Context, everything emptinessChecks) error {
	holdings, err := c.lastingContents(ctx, everything)
	if err != nil {
		return err
	}
	if len(holdings) > 0 {
		return &KeptError{Queues: holdings}
	}
	if c.Renew != nil {
		if c.All, c.Live, err = c.Renew(ctx); err != nil {
			return err
		}
	}
	if err := c.removeAll(ctx, everything); err != nil {
		return errors.Join(err, notUndone(c.undo.rollback(ctx)))
	}
	return nil
}

// removeAll proves twice that nothing is held. The first time policies are still in place, and what
// consumers reject or others publish meanwhile ends in a queue that is still bound, so that a
// refusal loses nothing. Only what begins to be rejected or published during the second proof, after
// 22 quiet seconds, has nowhere to go. The bindings that bring messages back to their work queues
// stay throughout.
func (c *changer) removeAll(ctx context.Context, everything emptinessChecks) error {
	objects := c.Live
	last, early := c.split(objects.Queues)
	if failed, exists := early[c.FailedQueue]; exists {
		last[c.FailedQueue] = failed
		delete(early, c.FailedQueue)
	}
	if err := c.unbindAndRequireEmpty(ctx, early, everything); err != nil {
		return err
	}
	attaching := maps.Clone(objects.Policies)
	delete(attaching, c.Shield)
	if err := c.removePolicies(ctx, attaching); err != nil {
		return err
	}
	if err := c.unbindAndRequireEmpty(ctx, last, c.contentChecks(objects.Queues)); err != nil {
		return err
	}
	// Those that others publish to go first: a classic queue may refuse, and nothing is gone by then.
	for _, queues := range []map[string]topology.Queue{last, early} {
		if err := eachByName(ctx, queues, c.removeQueue); err != nil {
			return err
		}
	}
	if err := c.toleratingSilence(c.removePolicies(ctx, c.shield())); err != nil {
		return err
	}
	if err := each(ctx, bindingsOfOthers(objects), c.removeBinding); err != nil {
		return err
	}
	return eachByName(ctx, objects.Exchanges, c.removeExchange)
}

// bindingsOfOthers lists the bindings that go neither with their exchange nor with their queue.
func bindingsOfOthers(t topology.Topology) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(t.Bindings), func(b topology.Binding) bool {
		_, withExchange := t.Exchanges[b.Source]
		_, withQueue := t.Queues[b.Destination]
		return withExchange || withQueue
	})
}

func (c *changer) shield() map[string]topology.Policy {
	policy, exists := c.Live.Policies[c.Shield]
	if !exists {
		return nil
	}
	return map[string]topology.Policy{c.Shield: policy}
}

func (c *changer) unbindAndRequireEmpty(ctx context.Context, unbind map[string]topology.Queue, empty emptinessChecks) error {
	if err := c.unbindAll(ctx, unbind); err != nil || len(empty) == 0 {
		return err
	}
	against, err := c.settleAndProve(ctx, c.Vhost, empty, true)
	if err == nil && len(against) > 0 {
		return &KeptError{Queues: against}
	}
	return err
}
