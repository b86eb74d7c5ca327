package session

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// detourAfter is how long a delay's queue can leave a message unanswered while the broker accepts later messages.
	// The election of a leader takes less.
	detourAfter = 15 * time.Second
	// detourRefusing is how long a delay's queue can refuse everything. By then, its lane has another channel.
	detourRefusing = 5 * time.Second
	// probePeriod is the time between two messages that try a delay whose queue did not answer.
	probePeriod = 2 * time.Minute
)

// detours send messages to another delay if the queue of their own accepts nothing. A quorum queue without a majority
// of its members refuses messages, or leaves them unanswered for a minute or longer. Messages that wait for it fill the
// window and would hold up all other delays.
type detours struct {
	// avoided are the delays whose queues accept nothing. The value says when a message can try the delay again.
	avoided map[time.Duration]time.Time
	// refusedSince is when a delay's queue began to refuse messages.
	refusedSince map[time.Duration]time.Time
	log          *slog.Logger
}

// avoids reports whether a message should not take the delay now.
func (d *detours) avoids(delay time.Duration, now time.Time) bool {
	next, avoided := d.avoided[delay]
	if avoided && now.After(next) {
		d.avoided[delay] = now.Add(probePeriod)
		return false
	}
	return avoided
}

// around replaces a delay whose queue accepts nothing by another delay, as if the delay were not bound. If an immediate
// return is the only other way, the message waits for its own delay.
func (d *detours) around(p *deadletter.Pipeline, v deadletter.Verdict, now time.Time) deadletter.Verdict {
	if len(d.avoided) == 0 || !v.Waits() {
		return v
	}
	other := v
	for d.avoids(other.Delay, now) {
		next, ok := p.Returned(other)
		if !ok || !next.Waits() {
			return v
		}
		other = next
	}
	return other
}

// avoidRefusing begins detours around queues that have refused everything for too long. The next message still tries
// the delay: its lane can have a new channel since the last refusal.
func (d *detours) avoidRefusing(p *deadletter.Pipeline, a alarm, now time.Time) {
	for delay, since := range d.refusedSince {
		if a.waited(since, now) > detourRefusing {
			d.avoid(p, delay, now)
		}
	}
}

// avoidSilent begins detours around queues that have not answered for too long. It returns their lanes if the broker accepted later
// messages. If no message is answered, the first one can be the reason.
func (d *detours) avoidSilent(p *deadletter.Pipeline, ls lanes, a alarm, now time.Time) (silent []*lane) {
	for _, l := range ls.all {
		if len(l.outstanding) == 0 || l.outstanding[0].sent.tag == 0 {
			continue
		}
		m := l.outstanding[0]
		v := m.verdict.(*retried).sent //nolint:forcetypeassert // only a pipeline has delays
		waits, acceptedLater := a.waited(m.sent.at, now), ls.heardOf.After(m.sent.at)
		if v.Waits() && (acceptedLater && waits > detourAfter || waits > confirmTimeout) {
			d.avoid(p, v.Delay, now.Add(probePeriod))
			if acceptedLater {
				silent = append(silent, l)
			}
		}
	}
	return silent
}

// avoid begins a detour. The first message from the given time on tries the delay again.
func (d *detours) avoid(p *deadletter.Pipeline, delay time.Duration, next time.Time) {
	if _, avoided := d.avoided[delay]; avoided {
		return
	}
	d.avoided[delay] = next
	d.log.Warn("messages take another delay: the queue of this one accepts nothing. Does it have a leader, and members on running nodes?",
		"delay", delay, "queue", p.Names.RetryQueue(delay))
}

// refused notes that the queue of a delay refused a message.
func (d *detours) refused(v deadletter.Verdict, now time.Time) {
	if _, noted := d.refusedSince[v.Delay]; !noted && v.Action == deadletter.Retry {
		d.refusedSince[v.Delay] = now
	}
}

// accepted notes that the queue of a delay accepted a message. If that ends a detour, all other detours end, too. After
// an outage of the whole broker, no message should take a much shorter delay than its own for longer than necessary.
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

// reconfigure forgets all refusals, and the delays that left the configuration.
func (d *detours) reconfigure(p *deadletter.Pipeline) {
	clear(d.refusedSince)
	maps.DeleteFunc(d.avoided, func(delay time.Duration, _ time.Time) bool { return !slices.Contains(p.Delays(), delay) })
}

const (
	// DefaultUnboundTimeout is how long messages are kept while no delay of the schedule is bound. After that, they are
	// parked. It covers the time between applying the schedule and configuring the worker, in either order.
	DefaultUnboundTimeout = 10 * time.Minute
	// unboundProbe is the time between two messages that try all delays meanwhile.
	unboundProbe = time.Second
)

// unbound follows whether any delay of the schedule is bound.
type unbound struct {
	timeout time.Duration
	log     *slog.Logger
	// since is when the first message found no delay bound. It is zero if the latest message found one.
	since time.Time
	// probe is the message that tries all delays. From nextProbe on, the next message tries them. All other messages
	// wait, since the broker would only return them again and again.
	probe     *message
	nextProbe time.Time
	parking   bool
}

// holds reports whether the message waits, unpublished, for a delay to be bound.
func (u *unbound) holds(m *message, v deadletter.Verdict, now time.Time) bool {
	if u.since.IsZero() || u.parking || m == u.probe || !v.Waits() {
		return false
	}
	if now.Before(u.nextProbe) {
		return true
	}
	u.probe, u.nextProbe = m, now.Add(unboundProbe)
	return false
}

// returned notes that a message found no delay bound. It reports true to keep the message and false to park it.
func (u *unbound) returned(m *message, now time.Time) bool {
	if u.since.IsZero() {
		u.since, u.nextProbe = now, now.Add(unboundProbe)
		u.log.Warn(deferredNoDelay, "for", u.timeout, "message_id", m.delivery.MessageId)
	}
	if m == u.probe {
		u.probe = nil
	}
	if now.Sub(u.since) < u.timeout {
		return true
	}
	if !u.parking {
		u.log.Error(parkedNoDelay, "after", u.timeout)
	}
	u.parking = true
	return false
}

func (u *unbound) accepted(v deadletter.Verdict) {
	if u.since.IsZero() || !v.Waits() {
		return
	}
	u.reset()
	u.log.Info("a delay of the schedule is bound again")
}

// reset forgets what it knew about another schedule.
func (u *unbound) reset() { *u = unbound{timeout: u.timeout, log: u.log} }
