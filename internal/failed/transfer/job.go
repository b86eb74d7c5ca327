// Package transfer goes over a queue once: it looks at each message, publishes or drops those that are meant, and
// puts the others back.
//
// A message is acknowledged only after the broker has confirmed its copy, so none is lost. Acknowledgements on their way are dropped
// when the channel or the connection ends, so a run ends its consumers, and waits until the queue counts them no more. If the
// connection is cut before, copies of some messages may be in both queues, and it says of how many at most.
package transfer

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
	// Last ends the run. If the job says OneFirst, and this is the first message, then no other was delivered.
	Last bool
}

// Job is what a run does. Without Publishes and Drops it only looks.
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
	// OneFirst says that one message is delivered before others, so that a run which ends over it has touched no other.
	OneFirst bool
	// Rate is how many are published a second at most, 0 for as many as possible.
	Rate float64
	// Progress is told every second how far the run is; nil for nobody.
	Progress func(Progress)
	// Interval is after which time a run with a rate puts back what is not meant, and begins again. Brokers close the channel of a
	// consumer that holds a message for 30 minutes, or what consumer_timeout says. 0 is 90 seconds.
	Interval time.Duration
}

const (
	defaultPrefetch = 2000
	defaultInterval = 90 * time.Second
	// rateAhead is what a run with a rate holds, in seconds.
	rateAhead = 4
)

// prefetch is how much is held at once. Acknowledgements wait behind what was delivered, so little is held where
// some are sent.
func (j Job) prefetch(ready int) int {
	prefetch := ready
	switch {
	case j.Rate > 0:
		prefetch = int(j.Rate * rateAhead)
	case j.Publishes || j.Drops:
		prefetch = defaultPrefetch
	}
	if j.Scan > 0 {
		prefetch = min(prefetch, j.Scan)
	}
	return max(prefetch, 1)
}

// Progress is how far a run is.
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

// Phase is a part of a run.
type Phase string

// Phases.
const (
	Reading   Phase = "reading"
	Finishing Phase = "finishing"
)

// Result is what a run has done.
type Result struct {
	// Ready is how many messages there were to see.
	Ready int
	// Consumers is how many others consumed the queue: what they hold was not seen.
	Consumers int
	Seen      int
	Selected  int
	// Vanished were counted and did not come: somebody has purged the queue, or they have expired.
	Vanished int
	// NotBack were put back and are not in the queue, as far as is known.
	NotBack int
	// Confirmed were published, Dropped acknowledged without.
	Confirmed, Dropped int
	// Returned found no queue, and Refused were nacked: they stay.
	Returned, Refused int
	// Oversized are larger than the broker takes: they stay, too.
	Oversized []Oversized
	// Uncertain were published, and nobody knows whether they arrived: they stay, and may be duplicated.
	Uncertain int
	// Unverified says that the queue may lack acknowledgements; see [Result.MostDoubled].
	Unverified bool
	// Interrupted says that the context ended the run.
	Interrupted bool
}

// MostDoubled is how many were published or dropped, and may be in the queue still.
func (r Result) MostDoubled() int {
	if r.Unverified {
		return min(r.Confirmed+r.Dropped, MayDouble)
	}
	return 0
}
