package apply

import (
	"context"
	"errors"
	"slices"
	"time"
)

// drain waits until nothing is visible in the queues, or fails with *KeptError.
func (e *execution) drain(ctx context.Context, checks emptinessChecks) error {
	against, err := e.lastingContents(ctx, checks)
	return keptUnless(err, against)
}

// lastingContents are contents that are still there after the time that the change gives its queues
// to drain, and at least after Times.Stale. If something is stuck, it waits no longer than that.
func (e *execution) lastingContents(ctx context.Context, checks emptinessChecks) (map[string]string, error) {
	deadline := time.Now().Add(e.times.Stale)
	if e.drainUntil.After(deadline) {
		deadline = e.drainUntil
	}
	for {
		found, stuck, err := e.visible(ctx, e.Vhost, checks)
		if err != nil {
			return found, err
		}
		if e.stuck(checks, stuck) || len(found) == 0 || time.Now().After(deadline) {
			return found, nil
		}
		e.waiting(found)
		e.waited = true
		if err := pause(ctx, e.times.Poll); err != nil {
			return nil, err
		}
	}
}

// stuck notes in which of the queues a look found messages that nobody consumes, and reports whether there are any that
// have been there for longer than a queue is reported to hold what is gone.
func (e *execution) stuck(checks emptinessChecks, queues []string) bool {
	for queue := range checks {
		if !slices.Contains(queues, queue) {
			delete(e.stuckSince, queue)
		} else if _, before := e.stuckSince[queue]; !before {
			e.stuckSince[queue] = time.Now()
		}
	}
	return e.isStuck()
}

func (e *execution) isStuck() bool {
	for _, since := range e.stuckSince {
		if time.Since(since) > e.times.Stale {
			return true
		}
	}
	return false
}

// waiting tells what is waited for.
func (e *execution) waiting(queues map[string]string) {
	if e.Waiting != nil && len(queues) > 0 {
		e.Waiting(queues)
	}
}

// untilDrained tries again as long as there is time to drain: what was published a moment ago may
// show up only in the middle of a proof. So may what was published and consumed before the change
// began, which is no reason to refuse: hence the time is at least Times.Stale. What is stuck does not drain.
func (e *execution) untilDrained(attempt func() error) error {
	for {
		err := attempt()
		var kept *KeptError
		var notUndone *NotUndoneError
		if !errors.As(err, &kept) || errors.As(err, &notUndone) || !time.Now().Before(e.drainUntil) || e.isStuck() {
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
