package pass

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Verdict is what happens to a message.
type Verdict struct {
	// Publish has what is published in its place.
	Publish *failed.Publishing
	// Drop acknowledges it without a copy.
	Drop bool
	// Last ends the pass. If the queue says OneFirst, and this is the first message, then no other was delivered.
	Last bool
}

// Job is what a pass does. Without Publishes and Drops it only looks.
type Job struct {
	// Decide is asked about each message, and again in the next round about those that it leaves; a zero verdict
	// leaves a message.
	Decide func(e *failed.Entry) Verdict
	// Done is told the outcome of each publish; nil for nobody.
	Done func(p failed.Publishing, o Outcome)
	// Publishes says that Decide may.
	Publishes bool
	// Drops says that Decide may.
	Drops bool
	// Keep makes what was dropped durable, before it is acknowledged; nil if nothing has to be.
	Keep func() error
	// Scan is how many messages are looked at, Limit how many are published or dropped; 0 for all.
	Scan, Limit int
	// Rate is how many are published a second at most, 0 for as many as possible.
	Rate float64
	// Before is what a pass that only looked has found. What of a message is known decides what can be
	// acknowledged again when acknowledgements were lost.
	Before *Result
	// Progress is told every second how far the pass is; nil for nobody.
	Progress func(Progress)
	// Interval is after which time a pass with a rate puts back what it holds, and begins again: no broker lets a
	// consumer hold messages indefinitely. 0 is five minutes.
	Interval time.Duration
}

const (
	defaultPrefetch = 2000
	defaultInterval = 5 * time.Minute
	// rateAhead is what a pass with a rate holds, in seconds.
	rateAhead = 4
)

func (j Job) acknowledges() bool { return j.Publishes || j.Drops }

// prefetch is how much is held at once. Acknowledgements wait behind what was delivered, so little is held where
// some are sent.
func (j Job) prefetch(ready int) int {
	prefetch := ready
	switch {
	case j.Rate > 0:
		prefetch = int(j.Rate * rateAhead)
	case j.acknowledges():
		prefetch = defaultPrefetch
	}
	if j.Scan > 0 {
		prefetch = min(prefetch, j.Scan)
	}
	return max(prefetch, 1)
}

func (j Job) interval() time.Duration {
	switch {
	case j.Rate == 0:
		return 0
	case j.Interval > 0:
		return j.Interval
	default:
		return defaultInterval
	}
}

// Progress is how far a pass is.
type Progress struct {
	Result
	// Phase is what it does.
	Phase Phase
	// Blocked is the broker's reason for accepting no messages, "" if it does.
	Blocked string
	// Waiting says that nothing comes, and Missing how many messages are awaited: they were counted.
	Waiting bool
	Missing int
}

// Phase is a part of a pass.
type Phase string

// Phases.
const (
	Reading   Phase = "reading"
	Finishing Phase = "finishing"
	Verifying Phase = "verifying"
)

// Result is what a pass has done.
type Result struct {
	// Ready is how many messages there were to see.
	Ready int
	// Consumers is how many others consumed the queue: what they hold was not seen.
	Consumers int
	Seen      int
	Selected  int
	// Vanished were counted and did not come: somebody has purged the queue, or they have expired.
	Vanished int
	// Largest is the size of the largest message in bytes.
	Largest int
	// Confirmed were published, Dropped acknowledged without.
	Confirmed, Dropped int
	// Returned found no queue, and Refused were nacked: they stay.
	Returned, Refused int
	// Oversized are larger than the broker takes: they stay, too.
	Oversized []Oversized
	// Uncertain were published, and nobody knows whether they arrived: they stay, and may be duplicated.
	Uncertain int
	// Again were published, came back because their acknowledgement was lost, and were acknowledged again.
	Again int
	// Doubled were published, and seem to be in the queue still.
	Doubled int
	// Unverified says that nobody knows how many are doubled; see [Result.MostDoubled].
	Unverified bool
	// Interrupted says that the context ended the pass.
	Interrupted bool
	// Census has what was seen.
	Census *Census
}

// MostDoubled is how many are doubled at most.
func (r Result) MostDoubled() int {
	if r.Unverified {
		return min(r.Confirmed+r.Dropped, MayDouble)
	}
	return r.Doubled
}
