package session

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// detourAfter is how long a delay's queue may leave a message unanswered while the broker accepts
	// later ones. Electing a leader takes less.
	detourAfter = 15 * time.Second
	// probePeriod passes between two messages that try a delay whose queue did not answer.
	probePeriod = 2 * time.Minute
)

// AvoidedDelays are the delays whose queues accept nothing, each with the time when a message may try it
// again. A quorum queue without a majority of its members, or without any, refuses messages or leaves them
// unanswered for a minute and more. What waits for it occupies the window, and would hold up all other
// delays.
type AvoidedDelays map[time.Duration]time.Time

// detours are other delays that messages take in place of those whose queues accept nothing.
type detours struct {
	avoided AvoidedDelays
	// refusedSince is when the queue of a delay began to refuse messages.
	refusedSince map[time.Duration]time.Time
	log          *slog.Logger
}

// avoids reports whether a message should not take the delay now.
func (d AvoidedDelays) avoids(delay time.Duration, now time.Time) bool {
	next, avoided := d[delay]
	if avoided && now.After(next) {
		d[delay] = now.Add(probePeriod)
		return false
	}
	return avoided
}

// around takes another delay in place of one whose queue accepts nothing, as for one that is not bound.
// If no other is left but to return at once, the message waits for its own.
func (d *detours) around(p *deadletter.Pipeline, v deadletter.Verdict, now time.Time) deadletter.Verdict {
	if len(d.avoided) == 0 || !v.Waits() {
		return v
	}
	other := v
	for d.avoided.avoids(other.Delay, now) {
		next, ok := p.Returned(other)
		if !ok || !next.Waits() {
			return v
		}
		other = next
	}
	return other
}

// observe begins detours around the queues that have refused everything for too long, and around those
// that have not answered; the latter is an error.
func (d *detours) observe(p *deadletter.Pipeline, outstanding []*message, a alarm, now time.Time) error {
	d.avoidRefusing(p, a, now)
	return d.avoidSilent(p, outstanding, a, now)
}

// avoidRefusing begins detours around the queues that have refused everything for too long. The next
// message still tries: if the session ends over it, too, its successor's channel may be served at once.
func (d *detours) avoidRefusing(p *deadletter.Pipeline, a alarm, now time.Time) {
	for delay, since := range d.refusedSince {
		if a.waited(since, now) > nackTimeout {
			d.avoid(p, delay, now)
		}
	}
}

// avoidSilent begins detours around the queues that have not answered for too long while the broker
// accepted later messages. The session has to be renewed then: the library keeps back the confirms of
// what follows an unanswered message, and what waits fills the window. If nothing is answered, the first
// message may be what the channel hangs at.
func (d *detours) avoidSilent(p *deadletter.Pipeline, outstanding []*message, a alarm, now time.Time) error {
	silent, acceptedLater := false, false
	for i, m := range slices.Backward(outstanding) {
		waits := a.waited(m.publishedAt, now)
		switch {
		case m.publishTag == 0: // the channel is closed
		case m.accepted():
			acceptedLater = true
		case acceptedLater && waits > detourAfter:
			silent = true
			d.avoid(p, m.verdict.delay(), now.Add(probePeriod))
		case i == 0 && waits > confirmTimeout:
			d.avoid(p, m.verdict.delay(), now.Add(probePeriod))
		}
	}
	if silent {
		return fmt.Errorf("the queue of a delay has not answered for %s", detourAfter)
	}
	return nil
}

// avoid begins a detour. The next message tries the delay again after the given time.
func (d *detours) avoid(p *deadletter.Pipeline, delay time.Duration, next time.Time) {
	if _, avoided := d.avoided[delay]; avoided {
		return
	}
	d.avoided[delay] = next
	d.log.Warn("messages take another delay: the queue of this one accepts nothing. Has it a leader, and members on nodes that run?",
		"delay", delay, "queue", p.Names.RetryQueue(delay))
}

// refused notes that the queue of a delay refused a message.
func (d *detours) refused(v deadletter.Verdict, now time.Time) {
	if _, noted := d.refusedSince[v.Delay]; !noted && v.Action == deadletter.Retry {
		d.refusedSince[v.Delay] = now
	}
}

// accepted notes that the queue of a delay accepted a message. If that ends a detour, all others end with
// it: after an outage of the whole broker, nothing should take a much shorter delay than its own for
// longer than need be.
func (d *detours) accepted(p *deadletter.Pipeline, v deadletter.Verdict) {
	if v.Action != deadletter.Retry {
		return
	}
	delete(d.refusedSince, v.Delay)
	if _, avoided := d.avoided[v.Delay]; avoided {
		clear(d.avoided)
		d.log.Info("the queue of a delay accepts messages again", "delay", v.Delay, "queue", p.Names.RetryQueue(v.Delay))
	}
}

// reconfigure forgets what was refused, and the delays that left the configuration.
func (d *detours) reconfigure(p *deadletter.Pipeline) {
	clear(d.refusedSince)
	maps.DeleteFunc(d.avoided, func(delay time.Duration, _ time.Time) bool { return !slices.Contains(p.Delays(), delay) })
}

// mostRefusing bounds how many of them are remembered.
const mostRefusing = 4096

// refusalsOver is how long an exchange takes everything before the log says that its queues refuse nothing more.
const refusalsOver = 30 * time.Second

// refusals remembers which exchanges have queues that refuse messages, so that the log says so once. Those that lead to the failed
// queues of work queues have an entry for each.
type refusals struct {
	log  *slog.Logger
	last map[refusing]time.Time
}

// refusing is an exchange, and the work queue whose messages are refused, if there is one.
type refusing struct{ exchange, workQueue string }

// refused notes that a message goes elsewhere, which the text says.
func (r *refusals) refused(now time.Time, exchange, workQueue, text string, more ...any) {
	at := refusing{exchange, workQueue}
	if _, known := r.last[at]; !known {
		if r.last == nil || len(r.last) >= mostRefusing {
			r.last = map[refusing]time.Time{}
		}
		r.log.Warn(text, at.details(more...)...)
	}
	r.last[at] = now
}

// accepted notes that all queues took a message.
func (r *refusals) accepted(now time.Time, exchange, workQueue string) {
	at := refusing{exchange, workQueue}
	if last, known := r.last[at]; known && now.Sub(last) > refusalsOver {
		delete(r.last, at)
		r.log.Info("the queues behind the exchange take all messages again", at.details()...)
	}
}

func (r refusing) details(more ...any) []any {
	details := append([]any{"exchange", r.exchange}, more...)
	if r.workQueue != "" {
		details = append(details, "work_queue", r.workQueue)
	}
	return details
}
