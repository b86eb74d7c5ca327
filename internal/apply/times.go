package apply

import "time"

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
	// Poll passes before the broker is asked once more for what it did not say or finish yet.
	Poll time.Duration
}

// DefaultTimes are those of a broker that gathers statistics every 5 seconds, as brokers do unless
// they are configured otherwise.
func DefaultTimes() Times {
	return Times{
		Settle: 10 * time.Second, Stale: 15 * time.Second, Between: 12 * time.Second,
		Report: 60 * time.Second, Poll: time.Second,
	}
}
