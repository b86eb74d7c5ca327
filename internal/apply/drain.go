package apply

import (
	"context"
	"errors"
	"time"
)

// drain waits until nothing is visible in the queues, or fails with *KeptError.
func (e *execution) drain(ctx context.Context, checks emptinessChecks) error {
	against, err := e.lastingContents(ctx, checks)
	return keptUnless(err, against)
}

// lastingContents are contents that are still there after the time that the change gives its queues
// to drain, and at least after Times.Stale.
func (e *execution) lastingContents(ctx context.Context, checks emptinessChecks) (map[string]string, error) {
	deadline := time.Now().Add(e.times.Stale)
	if e.drainUntil.After(deadline) {
		deadline = e.drainUntil
	}
	for {
		found, err := e.visible(ctx, e.Vhost, checks)
		if err != nil || len(found) == 0 || time.Now().After(deadline) {
			return found, err
		}
		if e.Waiting != nil {
			e.Waiting(found)
		}
		e.waited = true
		if err := pause(ctx, e.times.Poll); err != nil {
			return nil, err
		}
	}
}

// untilDrained tries again as long as there is time to drain: what was published a moment ago may
// show up only in the middle of a proof. So may what was published and consumed before the change
// began, which is no reason to refuse: hence the time is at least Times.Stale.
func (e *execution) untilDrained(attempt func() error) error {
	for {
		err := attempt()
		var kept *KeptError
		var notUndone *NotUndoneError
		if !errors.As(err, &kept) || errors.As(err, &notUndone) || !time.Now().Before(e.drainUntil) {
			return err
		}
	}
}

// keptUnless is err, or else a *KeptError if anything speaks against a change.
func keptUnless(err error, against map[string]string) error {
	if err == nil && len(against) > 0 {
		return &KeptError{Queues: against}
	}
	return err
}
