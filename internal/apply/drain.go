package apply

import (
	"context"
	"errors"
	"time"
)

// lastingContents are holdings that are still there after the time that the change gives its queues
// to drain, and at least after Times.Stale.
func (c *changer) lastingContents(ctx context.Context, queues emptinessChecks) (map[string]string, error) {
	deadline := time.Now().Add(c.times.Stale)
	if c.drainUntil.After(deadline) {
		deadline = c.drainUntil
	}
	for {
		found, err := c.visible(ctx, c.Vhost, queues)
		if err != nil || len(found) == 0 || time.Now().After(deadline) {
			return found, err
		}
		if c.Waiting != nil {
			c.Waiting(found)
		}
		if err := pause(ctx, c.times.Poll); err != nil {
			return nil, err
		}
	}
}

// untilDrained tries again as long as there is time to drain: what was published a moment ago may
// show up only in the middle of a proof. So may what was published and consumed before the change
// began, which is no reason to refuse: hence the time is at least Times.Stale.
func (c *changer) untilDrained(attempt func() error) error {
	for {
		err := attempt()
		var kept *KeptError
		var notUndone *NotUndoneError
		if !errors.As(err, &kept) || errors.As(err, &notUndone) || !time.Now().Before(c.drainUntil) {
			return err
		}
	}
}

// requireEmpty proves that nothing is held in the queues, or fails with *KeptError. Messages that only
// pass through are no reason: each look waits for a moment without.
func (c *changer) requireEmpty(ctx context.Context, queues emptinessChecks) error {
	if len(queues) == 0 {
		return nil
	}
	return c.untilDrained(func() error { return c.requireEmptyNow(ctx, queues) })
}

func (c *changer) requireEmptyNow(ctx context.Context, queues emptinessChecks) error {
	against, err := c.lastingContents(ctx, queues)
	if err == nil && len(against) == 0 {
		against, err = c.proveEmpty(ctx, c.Vhost, passing(queues))
	}
	if err == nil && len(against) > 0 {
		return &KeptError{Queues: against}
	}
	return err
}
