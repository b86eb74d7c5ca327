package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Times are how long the proof that queues are empty waits. A queue's counts lag behind: a message
// that was just published, or a dead letter that was just refused, was seen to be missing from them
// for up to 9 seconds. Anything but DefaultTimes is for tests whose subject is not the proof.
type Times struct {
	// Settle passes after the last binding was removed, so that what was on its way is counted.
	Settle time.Duration
	// Stale is how long a queue that was emptied, by a consumer or a purge, may be reported to hold
	// what is gone already, on a busy broker. Such a report can follow one that said it was empty.
	Stale time.Duration
	// Between passes between two inspections that both have to find nothing.
	Between time.Duration
	// Report is how long a broker may take to report on a queue; a young one has no counts yet.
	Report time.Duration
	// Lag is how long a plan waits between two readings that both have to find nothing in a queue. Quorum queues count their
	// messages every 5 seconds.
	Lag time.Duration
	// Poll passes before the broker is asked once more for what it did not say or finish yet.
	Poll time.Duration
}

// DefaultTimes are those of a broker that gathers statistics every 5 seconds, as brokers do unless
// they are configured otherwise.
func DefaultTimes() Times { return TimesFor(5 * time.Second) }

// TimesFor returns the times for a broker that gathers statistics at this interval.
func TimesFor(statistics time.Duration) Times {
	return Times{
		Settle: 2 * statistics, Stale: 3 * statistics, Between: 12 * statistics / 5,
		Report: 60 * time.Second, Lag: statistics + 500*time.Millisecond, Poll: statistics / 5,
	}
}

// prove proves that queues which receive nothing any more are empty, or fails with *KeptError.
func (e *execution) prove(ctx context.Context, checks emptinessChecks) error {
	against, err := e.settleAndProve(ctx, checks, true)
	return keptUnless(err, against)
}

// proveNonePending proves that no dead letters stay in the queues, or fails with *KeptError. Those that
// only pass through are no reason: each inspection waits for a moment without.
func (e *execution) proveNonePending(ctx context.Context, checks emptinessChecks) error {
	against, err := e.lastingContents(ctx, checks)
	if err == nil && len(against) == 0 {
		against, err = e.proveEmpty(ctx, checks, true)
	}
	return keptUnless(err, against)
}

// settleAndProve waits until what was on its way is counted, and then inspects the queues twice. It
// returns what speaks against each of them being empty; a queue without an entry is proved to be.
// With allOrNone, the first message that is seen while waiting ends it.
func (e *execution) settleAndProve(ctx context.Context, checks emptinessChecks, allOrNone bool) (map[string]string, error) {
	for end := time.Now().Add(e.times.Settle); time.Now().Before(end); {
		e.waiting(proving(checks))
		if err := pause(ctx, e.times.Settle/5); err != nil {
			return nil, err
		}
		found, _, err := e.visible(ctx, e.Vhost, checks)
		if err != nil || (allOrNone && len(found) > 0) {
			return found, err
		}
	}
	return e.proveEmpty(ctx, checks, false)
}

// proveEmpty inspects the queues twice and returns what speaks against each of them being empty. What
// may be passing through is treated like a broker that does not answer yet: the queue is inspected
// again. An inspection that finds nothing proves as much as it does without that: whatever stays is in
// all of them.
func (e *execution) proveEmpty(ctx context.Context, checks emptinessChecks, passing bool) (map[string]string, error) {
	against := map[string]string{}
	for round := range 2 {
		if round > 0 {
			e.waiting(proving(checks))
			if err := pause(ctx, e.times.Between); err != nil {
				return nil, err
			}
		}
		deadline := time.Now().Add(e.times.Report)
		for _, queue := range slices.Sorted(maps.Keys(checks)) {
			if against[queue] != "" {
				continue
			}
			seen, err := e.awaitReport(ctx, queue, checks[queue], deadline, passing)
			if err != nil {
				return nil, err
			}
			if seen != (inspection{}) {
				against[queue] = seen.found + seen.unknown
			}
		}
		if len(against) == len(checks) {
			break
		}
	}
	return against, nil
}

// awaitReport inspects a queue until the broker's answer says something.
func (e *execution) awaitReport(ctx context.Context, queue string, check check, deadline time.Time, passing bool) (inspection, error) {
	for {
		seen, err := e.inspectQueue(ctx, e.Vhost, queue, check)
		if passing {
			seen = inspection{unknown: seen.found + seen.unknown}
		}
		if err != nil || seen.unknown == "" || time.Now().After(deadline) {
			return seen, err
		}
		e.waiting(map[string]string{queue: seen.unknown})
		if err := pause(ctx, e.times.Poll); err != nil {
			return inspection{}, err
		}
	}
}

// proving says of each queue that nothing was seen in it so far.
func proving(checks emptinessChecks) map[string]string {
	queues := map[string]string{}
	for queue := range checks {
		queues[queue] = "no messages seen, which is being proved"
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
