package deadletter

import (
	"slices"
	"time"
)

const (
	// shortestCounted is the shortest delay that a combined wait can use. A combined wait is longer than any configured
	// delay. With shorter delays, messages would come round too often.
	shortestCounted = time.Second
	// maxWaits bounds how many delays a combined wait can take.
	maxWaits = 1000
	// tolerance is how much longer than the rest the last delay can be. Each delay ends a little late, so a rest that
	// should equal a delay is always a little shorter.
	tolerance = time.Second
)

// plan says how a message waits: the first delay, the number of delays, and their sum.
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

// plan waits at least for the given time, and at most the shortest counted delay longer. Each delay is the longest that
// does not exceed the rest. The last one is the shortest that covers the rest.
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

// waitUntil makes a message wait for the rest of the time that its consumer asked for. If no delay is so long, it
// combines several. Total is how long the message waits in the end.
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

// waitOn continues a combined wait. It counts no attempt, since no consumer had the message.
func (p *Pipeline) waitOn(l Letter, now time.Time) Verdict {
	rest := time.UnixMilli(l.DueAt).Sub(now)
	if rest <= 0 {
		return Verdict{Letter: l, Action: Retry}
	}
	v, _ := p.waitUntil(l, l.DueAt, rest)
	return v
}

// waitsOn reports whether the message must wait once more after this delay.
func (v Verdict) waitsOn() bool { return v.rest > v.Delay }

// wait is how long the message waits before its next attempt.
func (v Verdict) wait() time.Duration { return max(v.Delay, v.rest) }
