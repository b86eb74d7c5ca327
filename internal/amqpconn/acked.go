package amqpconn

import "time"

const (
	// ackPoll is how often the consumers are counted.
	ackPoll = 50 * time.Millisecond
	// countPatience is how long the first count may take before the consumers are ended.
	countPatience = time.Second
)

// AwaitAcks ends a queue's own consumers, and returns once the queue has all acknowledgements of what was delivered to them. AMQP
// does not confirm them, but a quorum queue counts a consumer that has ended until everything that was delivered to it is
// acknowledged or put back. A classic queue does not, and drops none. Only consumers of others can make the count rise.
func AwaitAcks(own int, count func() (int, error), cancel func()) error {
	unanswered := time.AfterFunc(countPatience, cancel)
	last, err := count()
	if unanswered.Stop() {
		go cancel()
	}
	others := last - own
	for n := last; err == nil && n > max(0, others); n, err = count() {
		others += max(0, n-last)
		last = n
		time.Sleep(ackPoll)
	}
	return err
}
