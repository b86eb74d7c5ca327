package apply

import (
	"context"
	"slices"
	"time"
)

// Times are the waits of the proof that queues are empty. A queue's counts lag: new messages and newly refused dead
// letters were missing from them for up to 9 seconds. Only tests of other subjects use anything but DefaultTimes.
type Times struct {
	// Settle is the wait after the last binding is deleted, until messages on their way are counted.
	Settle time.Duration
	// Stale is how long a busy broker can report messages in a queue that a consumer or a purge has emptied. Such a
	// report can follow one that said the queue was empty.
	Stale time.Duration
	// Between is the wait between two inspections that must both find nothing.
	Between time.Duration
	// Report is how long a broker can take to report on a queue. A new queue has no counts yet.
	Report time.Duration
	// Lag is the wait of a plan between two readings that must both find nothing. Quorum queues count their messages
	// every 5 seconds.
	Lag time.Duration
	// Poll is the wait before the broker is asked again for missing information.
	Poll time.Duration
	// Patience is how long a request that must not fail halfway is repeated.
	Patience time.Duration
}

// DefaultTimes returns the times for a broker that gathers statistics every 5 seconds, which is the brokers' default.
func DefaultTimes() Times { return TimesFor(5 * time.Second) }

// TimesFor returns the times for a broker that gathers statistics at this interval.
func TimesFor(statistics time.Duration) Times {
	return Times{
		Settle: 2 * statistics, Stale: 3 * statistics, Between: 12 * statistics / 5,
		Report: 60 * time.Second, Lag: statistics + 500*time.Millisecond, Poll: statistics / 5, Patience: 30 * time.Second,
	}
}

// drain waits until no contents are visible in queues that still receive messages. It fails with *KeptError if some remain.
func (e *execution) drain(ctx context.Context, s step) error {
	return keptUnless(e.lastingContents(ctx, s.checks))
}

// prove fails with *KeptError unless queues without new messages are proved empty.
func (e *execution) prove(ctx context.Context, s step) error {
	return keptUnless(e.settleAndProve(ctx, s.checks, true))
}

// proveNonePending fails with *KeptError if dead letters stay in the queues. They can pass through, so each inspection
// waits for a moment without any.
func (e *execution) proveNonePending(ctx context.Context, s step) error {
	against, err := e.lastingContents(ctx, s.checks)
	if err == nil && len(against) == 0 {
		against, err = e.proveEmpty(ctx, s.checks, true)
	}
	return keptUnless(against, err)
}

// settleAndProve waits until messages on their way are counted, and then inspects the queues twice. It returns a reason
// for each queue that is not proved empty. With allOrNone, the first visible message ends the wait. The broker is asked once for
// each interval of its statistics.
func (e *execution) settleAndProve(ctx context.Context, checks emptinessChecks, allOrNone bool) (map[string]string, error) {
	for end := time.Now().Add(e.times.Settle); time.Now().Before(end); {
		if err := e.wait(ctx, e.times.Settle/2, proving(checks)); err != nil {
			return nil, err
		}
		found, _, err := e.visible(ctx, e.Vhost, checks)
		if err != nil || (allOrNone && len(found) > 0) {
			return found, err
		}
	}
	return e.proveEmpty(ctx, checks, false)
}

// proveEmpty inspects the queues twice and returns a reason for each queue that is not proved empty. With passing, it
// inspects a queue again until an inspection finds nothing. That proves as much, because messages that stay appear in
// every inspection.
func (e *execution) proveEmpty(ctx context.Context, checks emptinessChecks, passing bool) (map[string]string, error) {
	against := map[string]string{}
	for round := range 2 {
		if round > 0 {
			if err := e.wait(ctx, e.times.Between, proving(checks)); err != nil {
				return nil, err
			}
		}
		deadline := time.Now().Add(e.times.Report)
		for queue, check := range sorted(checks) {
			if against[queue] != "" {
				continue
			}
			seen, err := e.awaitReport(ctx, queue, check, deadline, passing)
			if err != nil {
				return nil, err
			}
			if seen != (Inspection{}) {
				against[queue] = seen.Found + seen.Unknown
			}
		}
		if len(against) == len(checks) {
			break
		}
	}
	return against, nil
}

// awaitReport inspects a queue until the broker's answer is conclusive.
func (e *execution) awaitReport(ctx context.Context, queue string, check check, deadline time.Time, passing bool) (Inspection, error) {
	for {
		seen, err := e.inspectQueue(ctx, e.Vhost, queue, check)
		if passing {
			seen = Inspection{Unknown: seen.Found + seen.Unknown}
		}
		if err != nil || seen.Unknown == "" || time.Now().After(deadline) {
			return seen, err
		}
		if err := e.wait(ctx, e.times.Poll, map[string]string{queue: seen.Unknown}); err != nil {
			return Inspection{}, err
		}
	}
}

// proving returns the progress text for each queue while nothing is found.
func proving(checks emptinessChecks) map[string]string {
	queues := map[string]string{}
	for queue := range checks {
		queues[queue] = "no messages seen, proof under way"
	}
	return queues
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}

// lastingContents returns the contents that remain after the change's time to drain, and after at least Times.Stale. If
// messages are stuck, it stops waiting after Times.Stale.
func (e *execution) lastingContents(ctx context.Context, checks emptinessChecks) (map[string]string, error) {
	deadline := time.Now().Add(max(e.times.Stale, time.Until(e.drainUntil)))
	for {
		found, stuck, err := e.visible(ctx, e.Vhost, checks)
		if err != nil {
			return found, err
		}
		if e.stuck(checks, stuck) || len(found) == 0 || time.Now().After(deadline) {
			return found, nil
		}
		e.waited = true
		if err := e.wait(ctx, e.times.Poll, found); err != nil {
			return nil, err
		}
	}
}

// stuck records the queues with messages and no consumer. It reports whether such messages have been there for longer
// than Times.Stale, so that the report cannot be outdated.
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

// wait pauses, and tells which queues the change waits for.
func (e *execution) wait(ctx context.Context, length time.Duration, queues map[string]string) error {
	if e.Waiting != nil && len(queues) > 0 {
		e.Waiting(queues)
	}
	return pause(ctx, length)
}

// untilDrained tries again while there is time to drain, because new messages can appear during a proof. Messages that
// were consumed before the change can appear too, so the time is at least Times.Stale. If messages are stuck, it stops.
func (e *execution) untilDrained(attempt func() error) error {
	for {
		err := attempt()
		if !isA[*KeptError](err) || isA[*NotUndoneError](err) || !time.Now().Before(e.drainUntil) || e.isStuck() {
			return err
		}
	}
}

// keptUnless returns err if it is set. Otherwise it returns a *KeptError if there are reasons against the change.
func keptUnless(against map[string]string, err error) error {
	if err == nil && len(against) > 0 {
		return &KeptError{Queues: against}
	}
	return err
}
