package deadletter

import (
	"slices"
	"time"
)

const (
	// shortestCounted is the shortest delay by which a wait is made that is longer than any delay. With
	// shorter ones, messages would come round too often.
	shortestCounted = time.Second
	// maxWaits is how many delays such a wait may take.
	maxWaits = 1000
	// tolerance is how much longer than the rest a delay may be that ends the wait at once. Each wait ends a
	// little late, so a rest that was to be a delay is never quite that.
	tolerance = time.Second
)

// counted are the delays by which a wait is made that is longer than any of them, the longest first.
func counted(delays []time.Duration) []time.Duration {
	long := slices.DeleteFunc(slices.Clone(delays), func(d time.Duration) bool { return d < shortestCounted })
	slices.Sort(long)
	slices.Reverse(long)
	return slices.Compact(long)
}

// plan is how a message waits: the first delay, how many there are, and how long they are together.
type plan struct {
	first, total time.Duration
	waits        int64
}

func (w *plan) take(delay time.Duration, times int64) {
	if w.waits == 0 && times > 0 {
		w.first = delay
	}
	w.waits += times
	w.total += time.Duration(times) * delay
}

// plan waits for the given time at least, and longer by the shortest counted delay at most: each delay is
// the longest that is not longer than the rest, and the last one the shortest that covers what is left.
func (p *Pipeline) plan(rest time.Duration) (w plan) {
	for i, delay := range p.counted {
		w.take(delay, int64(rest/delay))
		rest %= delay
		if rest == 0 {
			return w
		}
		shorterDoes := i+1 < len(p.counted) && p.counted[i+1] >= rest
		if delay-rest <= tolerance && !shorterDoes {
			w.take(delay, 1)
			return w
		}
	}
	w.take(p.counted[len(p.counted)-1], 1)
	return w
}

// waitUntil has a message wait for the rest of the time that its consumer asked for, by several delays if no delay is
// so long. Total is how long it waits in the end.
func (p *Pipeline) waitUntil(l Letter, dueAt int64, rest time.Duration) (v Verdict, total time.Duration) {
	if len(p.counted) == 0 {
		longest := slices.Max(p.delays)
		return Verdict{Letter: l, Action: Retry, Delay: longest}, longest
	}
	w := p.plan(rest)
	if w.waits > maxWaits {
		return fail(l, ReasonRetryAfterTooLong), 0
	}
	return Verdict{Letter: l, Action: Retry, Delay: w.first, rest: rest, dueAt: dueAt}, w.total
}

// waitOn is what happens to a message that comes from one of several waits. No attempt was made.
func (p *Pipeline) waitOn(l Letter, now time.Time) Verdict {
	rest := time.UnixMilli(l.DueAt).Sub(now)
	if rest <= 0 {
		return Verdict{Letter: l, Action: Retry}
	}
	v, _ := p.waitUntil(l, l.DueAt, rest)
	return v
}

// waitsOn reports whether the message has to wait once more after this delay.
func (v Verdict) waitsOn() bool { return v.rest > v.Delay }

// wait is how long the message waits before its next attempt.
func (v Verdict) wait() time.Duration { return max(v.Delay, v.rest) }
