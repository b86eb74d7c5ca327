package deadletter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Action says what happens to a dead letter.
type Action int

const (
	// Retry publishes the message to wait for a delay and then return to its work queue.
	Retry Action = iota
	// Rescue publishes the message straight to its work queue, which has lost its binding.
	Rescue
	// Fail parks the message in the failed queue of its work queue, or in the pipeline's.
	Fail
)

// Detour says why a failed message goes to the pipeline's failed queue in place of its work queue's own.
type Detour string

// Reasons for a detour.
const (
	// DetourRefused: the failed queue of the work queue is full or unreachable.
	DetourRefused Detour = "refused"
	// DetourMissing: the exchange that leads to the failed queue does not exist.
	DetourMissing Detour = "missing"
	// DetourForbidden: the worker's user must not write to that exchange.
	DetourForbidden Detour = "forbidden"
)

// Detours lists all detours.
func Detours() []Detour { return []Detour{DetourRefused, DetourMissing, DetourForbidden} }

// Verdict says what happens to a letter now, and what to try if the broker refuses.
type Verdict struct {
	Letter Letter
	Action Action
	// Delay is how long a retried message waits. With 0, it returns at once.
	Delay time.Duration
	// Reason is the dead-letter-reason of a failed message.
	Reason string
	// Error is the dead-letter-error of a failed message. It is "" if the worker has no error to report.
	Error string

	// Detour says why a failed message with a known work queue goes to the pipeline's failed queue. It is "" without a
	// detour.
	Detour Detour

	// rest is the least time that the message waits if its consumer asked for a wait. dueAt is when that wait ends, in
	// milliseconds since the epoch. Both are 0 if the schedule decides.
	rest  time.Duration
	dueAt int64

	// Refused says that a failed message goes to the refused queue. One of its target queues did not take it, and
	// another can have it already.
	Refused bool

	// others are the delays to try if this one is not bound. It is nil until the first of them is needed.
	others []time.Duration
	// pipelines says that a failed message goes to the pipeline's failed queue, even if its work queue has one of its
	// own.
	pipelines bool
	// notAtOnce rules out a return without a delay, since the message would go round as fast as the broker can.
	notAtOnce bool
}

// Decide returns what happens to a letter now.
func (p *Pipeline) Decide(l Letter, now time.Time) Verdict {
	switch {
	case l.Queue == "":
		return p.failUnknown(l)
	case l.Lost && l.Unreadable != "":
		return failUnreadable(l)
	case l.Lost && l.DueAt > 0:
		return p.waitOn(l, now)
	case l.Lost:
		return Verdict{Letter: l, Action: Rescue}
	case !slices.Contains(p.Worker.RetryOn, l.Reason):
		return fail(l, knownReason(l.Reason))
	case l.Never:
		return fail(l, ReasonUnrecoverable)
	case l.Unreadable == HeaderCount, l.Unreadable != "" && p.maxAge > 0:
		return failUnreadable(l)
	case l.Count >= p.maxAttemptsIn(l.Queue):
		return fail(l, ReasonExhausted)
	}
	v, wait := p.retry(l, now)
	if v.Action == Retry && p.maxAge > 0 && l.age(now)+wait > p.maxAge {
		return fail(l, ReasonTooOld)
	}
	return v
}

// retry waits as long as the consumer asked for, or else as long as the schedule says.
func (p *Pipeline) retry(l Letter, now time.Time) (v Verdict, wait time.Duration) {
	if !l.NotBefore.IsZero() {
		l.After = min(max(0, l.NotBefore.Sub(now)), longestWait)
	}
	if l.After < 0 {
		delay := p.delays[min(l.Count, int64(len(p.delays)))-1]
		if l.answers && delay == 0 { // its consumer would publish the message again as fast as the broker can
			delay = p.delayOfAtLeast(time.Millisecond)
		}
		return Verdict{Letter: l, Action: Retry, Delay: delay}, delay
	}
	dueAt := now.Add(l.After + time.Millisecond - 1).UnixMilli()
	if l.After > slices.Max(p.delays) {
		return p.waitUntil(l, dueAt, l.After)
	}
	delay := p.delayOfAtLeast(l.After)
	return Verdict{Letter: l, Action: Retry, Delay: delay, rest: l.After, dueAt: dueAt}, delay
}

// Returned returns what to try after the broker returned the message as unroutable, or forbade the worker to publish
// it. False means that no other way is left. The message must then be kept until the failed exchange has its queue
// again.
func (p *Pipeline) Returned(v Verdict) (Verdict, bool) {
	switch v.Action {
	case Rescue:
		return fail(v.Letter, ReasonUnknownQueue), true
	case Retry:
		if v.others == nil {
			v.others = p.otherDelays(v)
		}
		if len(v.others) == 0 {
			return fail(v.Letter, ReasonWorkerError), true
		}
		v.Delay, v.others = v.others[0], v.others[1:]
		return v, true
	default:
		// The alternate exchange has no queue either, so the message now waits for the alternate exchange itself.
		own := v.ToOwnFailedQueue()
		v.pipelines = true
		return v, own
	}
}

// ToOwnFailedQueue reports whether a failed message goes to the failed queue of its work queue, if there is one.
func (v Verdict) ToOwnFailedQueue() bool {
	return v.Action == Fail && v.Letter.Queue != "" && !v.pipelines
}

// Detoured sends a failed message to the pipeline's failed queue, since its own does not take it.
func (v Verdict) Detoured(why Detour) Verdict {
	v.pipelines, v.Detour = true, why
	return v
}

// SetAside sends a failed message to the refused queue after a queue refused it. From there, the broker passes it to
// the pipeline's failed queue. The broker does not say whether the work queue's failed queue refused it.
func (v Verdict) SetAside() Verdict {
	if v.ToOwnFailedQueue() {
		v = v.Detoured(DetourRefused)
	}
	v.Refused = true
	return v
}

// Nacked returns what to try after the broker refused the message. If a work queue cannot take its message now, the
// message comes back after the longest delay. It does not occupy the worker meanwhile. False means that no other way is
// left. The message must then be kept and published again unchanged.
func (p *Pipeline) Nacked(v Verdict) (Verdict, bool) {
	longest := slices.Max(p.delays)
	if !v.ToWorkQueue() || longest == 0 {
		return v, false
	}
	return Verdict{Letter: v.Letter, Action: Retry, Delay: longest, notAtOnce: true}, true
}

// ToWorkQueue reports whether the message goes to its work queue without a wait. A queue of the application then
// decides whether it takes the message.
func (v Verdict) ToWorkQueue() bool {
	return v.Action == Rescue || v.Action == Retry && v.Delay == 0
}

// Waits reports whether the message goes to a retry queue.
func (v Verdict) Waits() bool { return v.Action == Retry && v.Delay != 0 }

// otherDelays lists the delays to try in place of one that is not bound. The next longer ones come first, and then the
// next shorter ones.
func (p *Pipeline) otherDelays(v Verdict) []time.Duration {
	waits := v.notAtOnce || v.rest > 0
	longer := slices.DeleteFunc(p.Delays(), func(d time.Duration) bool { return d <= v.Delay })
	shorter := slices.DeleteFunc(p.Delays(), func(d time.Duration) bool { return d >= v.Delay || d == 0 && waits })
	slices.Reverse(shorter)
	return append(longer, shorter...)
}

// delayOfAtLeast returns the shortest configured delay that is at least as long as wanted. If no delay is so long, it
// returns the longest delay.
func (p *Pipeline) delayOfAtLeast(wanted time.Duration) time.Duration {
	delays := p.Delays()
	i, _ := slices.BinarySearch(delays, wanted)
	return delays[min(i, len(delays)-1)]
}

func fail(l Letter, reason string) Verdict {
	return Verdict{Letter: l, Action: Fail, Reason: reason}
}

// failUnknown parks a message without a known work queue. The error tells the consumer's author what to publish to.
func (p *Pipeline) failUnknown(l Letter) Verdict {
	v := fail(l, ReasonUnknownQueue)
	v.Error = fmt.Sprintf("no header %s names a work queue of the pipeline: to have a message retried, "+
		"publish it to the exchange %q with that header", HeaderQueue, p.Names.DeadLetterExchange())
	return v
}

// failUnreadable parks a message whose number of attempts or age is not known.
func failUnreadable(l Letter) Verdict {
	v := fail(l, ReasonUnreadable)
	v.Error = fmt.Sprintf("the header %s has a value that cannot be read: copy it unchanged", l.Unreadable)
	return v
}

// knownReason replaces a reason that the broker does not know, to keep it out of the failed queue.
func knownReason(reason string) string {
	if slices.Contains(pipeline.Reasons(), reason) {
		return reason
	}
	return ReasonMalformed
}

// Unjudged returns the verdict on a delivery whose judgement ended in an internal error (panic). It reads no headers.
func Unjudged(d *amqp.Delivery) Verdict {
	return fail(Letter{Exchange: d.Exchange, RoutingKey: d.RoutingKey}, ReasonWorkerError)
}

// Undeliverable returns the verdict on a message that the broker cannot deliver over AMQP 0-9-1. The delivery has as
// much of the message as AMQP 0-9-1 can carry.
func (p *Pipeline) Undeliverable(d *amqp.Delivery, why string) Verdict {
	v := fail(p.Read(d), ReasonMalformed)
	v.Error, v.pipelines = why, true
	return v
}

// Unbuilt returns what to try after an internal error (panic) while the message was built. False means that no other
// way is left.
func (v Verdict) Unbuilt() (Verdict, bool) {
	if v.Action == Fail && v.Reason == ReasonWorkerError {
		return v, false
	}
	return fail(v.Letter, ReasonWorkerError), true
}

// Route is where a message is published. The publish is always mandatory.
type Route struct {
	Exchange string
	Key      string
	// CC are additional routing keys. Direct exchanges route on the header CC as they do on the key.
	CC []string
	// Target tells the queues behind the exchange that get the message from those that do not. It is a key of the exchange, a work
	// queue, or "" if all get it.
	Target string
}

// Route returns where to publish a message with the verdict. The addresses are in CC, so that the consumer still sees
// the original routing key.
func (p *Pipeline) Route(v Verdict) Route {
	switch {
	case v.Refused:
		return Route{
			Exchange: p.Names.RetryExchange(), Target: pipeline.RefusedKey,
			Key: escape(v.Letter.RoutingKey, pipeline.KeyPrefixes()...),
			CC:  []string{pipeline.RefusedKey},
		}
	case v.Action == Fail && v.ToOwnFailedQueue():
		return Route{
			Exchange: p.Names.FailedRouteExchange(), Target: v.Letter.Queue,
			Key: escape(v.Letter.RoutingKey, pipeline.FailedKeyPrefix),
			CC:  []string{pipeline.FailedKey(v.Letter.Queue)},
		}
	case v.Action == Fail:
		return Route{Exchange: p.Names.FailedExchange(), Key: v.Letter.RoutingKey}
	case v.Action == Rescue:
		return Route{Key: v.Letter.Queue, Target: v.Letter.Queue}
	case v.Delay == 0:
		return ReturnRoute(p.Names, v.Letter.Queue, v.Letter.RoutingKey)
	case v.waitsOn():
		// The return exchange has no binding with this key, so its alternate exchange brings the message back to the
		// inbox.
		return Route{Exchange: p.Names.RetryExchange(), Key: pipeline.DelayKey(v.Delay), Target: pipeline.DelayKey(v.Delay)}
	default:
		return Route{
			Exchange: p.Names.RetryExchange(), Target: pipeline.DelayKey(v.Delay),
			Key: escape(v.Letter.RoutingKey, pipeline.KeyPrefixes()...),
			CC:  []string{pipeline.DelayKey(v.Delay), pipeline.ReturnKey(v.Letter.Queue)},
		}
	}
}

// ReturnRoute is the way straight back to a work queue of the pipeline, with the message's original key.
func ReturnRoute(names pipeline.Names, queue, key string) Route {
	return Route{
		Exchange: names.ReturnExchange(), Target: queue, Key: escape(key, pipeline.KeyPrefixes()...), CC: []string{pipeline.ReturnKey(queue)},
	}
}

// escape replaces a routing key that can be one of the exchange's own. The exchange would route by it, too, so the
// message would double with each attempt, or be parked with others.
func escape(key string, prefixes ...string) string {
	if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return pipeline.EscapedKey
	}
	return key
}
