// Package transfer goes over a queue once. It reads each message, publishes or drops the selected messages, and puts the
// others back.
//
// A run that acknowledges nothing takes all messages at once, and ends by cutting the connection. So the queue keeps its order,
// also if the run ends early or is killed.
//
// A message is acknowledged only after the broker has confirmed its copy, so no message is lost. A broker drops
// acknowledgements that are on their way when the channel or the connection ends. So a run with acknowledgements ends its
// consumers and waits until the queue no longer counts them. If the connection is cut earlier, some messages can be in both
// queues; the run then reports how many at most.
package transfer

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Choice is the job's decision about a message.
type Choice struct {
	// Publish is the message to publish in its place, nil for none.
	Publish *failed.Publishing
	// Drop acknowledges the message without a copy.
	Drop bool
	// Last ends the run. If the job sets OneFirst and this is the first message, no other message was delivered.
	Last bool
}

// Job describes a run. Without Publishes and Drops it only reads.
type Job struct {
	// Decide returns the choice on each message. A zero choice leaves the message, and the next round asks about it again.
	Decide func(e *failed.Entry) Choice
	// Done learns of each publish whether the message is in a queue; it can be nil.
	Done func(p failed.Publishing, confirmed bool)
	// Publishes allows Decide to publish.
	Publishes bool
	// Drops allows Decide to drop.
	Drops bool
	// Before is the result of an earlier run over the queue, which this run continues.
	Before Result
	// Scan is how many messages are read, Limit how many are published or dropped in all runs. 0 means all.
	Scan, Limit int
	// Takes is how many messages the queue hands over, 0 for all. If it is less than for an earlier run, the queue's first
	// messages move behind others.
	Takes int
	// Nacks says that RabbitMQ 4.3 counts a cut connection against a delivery limit of the queue, but not basic.nack.
	Nacks bool
	// OneFirst has one message delivered before all others. A run that ends at this message has touched no other message.
	OneFirst bool
	// Rate is how many messages are published per second at most, 0 for no limit.
	Rate float64
	// Progress is called every second; it can be nil.
	Progress func(Progress)
	// Interval is how often a run with a rate puts back the other messages and begins again, 0 for every 90 seconds. Brokers
	// close the channel of a consumer that holds a message for longer than consumer_timeout, 30 minutes by default.
	Interval time.Duration
}

const (
	defaultPrefetch = 2000
	// fewStay is how many messages must stay for their order to be worth a smaller prefetch.
	fewStay         = 100
	defaultInterval = 90 * time.Second
	// rateAhead is for how many seconds a run with a rate prefetches messages.
	rateAhead = 4
)

// prefetch is how many messages are held at once. It is small if the job acknowledges messages, since acknowledgements wait
// behind deliveries.
func (j Job) prefetch(ready int) int {
	prefetch := ready
	switch {
	case j.Takes > 0:
		prefetch = min(j.Takes, ready)
	case j.Rate > 0:
		prefetch = int(j.Rate * rateAhead)
	case j.acts():
		prefetch = defaultPrefetch
		if stay := ready - j.Limit; j.Limit > 0 && stay >= fewStay { // so that messages remain to refill the consumer
			prefetch = min(prefetch, stay)
		}
	}
	return max(prefetch, 1)
}

// acts reports whether the job acknowledges messages.
func (j Job) acts() bool { return j.Publishes || j.Drops }

// Progress is how far a run is.
type Progress struct {
	Result
	// Phase is the current part of the run.
	Phase Phase
	// Blocked is the broker's reason for accepting no messages, "" if it accepts them.
	Blocked string
	// Waiting says that no messages come. Missing is how many of the counted messages did not come yet.
	Waiting bool
	Missing int
}

// Phase is a part of a run.
type Phase string

// Phases.
const (
	Reading   Phase = "reading"
	Finishing Phase = "finishing"
	// Awaiting is for callers that wait for messages which can come back.
	Awaiting Phase = "waiting for messages that come back"
)

// Result counts a run's work.
type Result struct {
	// Ready is how many messages were ready.
	Ready int
	// Consumers is how many other consumers the queue had. The run cannot see messages that they hold.
	Consumers int
	Seen      int
	Selected  int
	// Uncounted says that the broker told no counts: see [amqpconn.ErrNeedsConfigure]. The run ended because no message came for
	// five seconds. It is not known whether these were all, and whether the messages are back.
	Uncounted bool
	// Arrived is how many messages came into the queue meanwhile, at least.
	Arrived int
	// Vanished were counted and did not come, because the queue was purged or they expired.
	Vanished int
	// NotBack were put back and are missing in the queue, as far as is known.
	NotBack int
	// Confirmed were published. Dropped were acknowledged without a copy.
	Confirmed, Dropped int
	// Returned found no queue, and Refused got basic.nack. Both stay in the queue.
	Returned, Refused int
	// Oversized are larger than the broker accepts. They stay in the queue.
	Oversized []Oversized
	// Uncertain were published without an answer from the broker. They stay in the queue and can be duplicated.
	Uncertain int
	// Unverified says that acknowledgements can have been lost; see [Result.MostDoubled].
	Unverified bool
	// Interrupted says that the context ended the run.
	Interrupted bool
}

// MostDoubled is how many messages at most were published or dropped and can still be in the queue.
func (r Result) MostDoubled() int {
	if r.Unverified {
		return min(r.Confirmed+r.Dropped, MayDouble)
	}
	return 0
}
