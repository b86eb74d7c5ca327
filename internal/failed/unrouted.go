package failed

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// ReasonNoInbox is that the broker led a message into the unrouted queue by itself: the inbox was not bound to the delayed
// exchange, so that nobody could delay the message.
const ReasonNoInbox = "no_inbox"

// UnroutedOf is the delayed exchange whose unrouted queue it is by its name, "" if it is none.
func UnroutedOf(queue string) delayed.Names {
	return ownerOf[delayed.Names](queue, delayed.Names("").UnroutedQueue())
}

// AsideIn are the headers in which messages of a queue have what was set aside.
func AsideIn(queue string) deadletter.Aside {
	if UnroutedOf(queue) != "" {
		return delaying.Aside()
	}
	return deadletter.AsideOfPipelines()
}

// isUnrouted reports whether the message has come to the queue on a way that only a delayed exchange has.
func (e *Entry) isUnrouted(deaths []death) bool {
	n := UnroutedOf(e.Queue)
	if n == "" {
		return false
	}
	own := []string{n.Exchange(), n.DeliverExchange(), n.UnroutedExchange()}
	_, isLevel := n.LevelOf(e.Exchange) // a message that passes a level keeps its exchange
	return isLevel || slices.Contains(own, e.Exchange) || len(deaths) > 0 && deaths[0].queue == n.Inbox()
}

// readUnrouted reads what a delayed exchange could not delay or, when it was due, not route.
func (e *Entry) readUnrouted(f fields, deaths []death) {
	n := UnroutedOf(e.Queue)
	e.System, e.FirstExchange = SystemDelayed, n.Exchange()
	e.Error, e.Exception = f.text(deadletter.HeaderDeadLetterError), f.text(deadletter.HeaderDeadLetterException)
	// The sidecar makes the delay of what is due negative.
	e.DelayMS = max(0, delayIn(f[delaying.HeaderDelay]))
	reason, last := f.text(deadletter.HeaderDeadLetterReason), death{}
	if len(deaths) > 0 {
		last = deaths[0]
	}
	_, waited := n.LevelOf(last.queue)
	switch {
	case waited:
		e.Reason, e.FailedAt = delaying.ReasonUnroutable, last.at
	case e.Exchange == n.DeliverExchange():
		e.Reason = delaying.ReasonUnroutable
	case e.Exchange == n.Exchange():
		e.Reason = ReasonNoInbox
	case last.queue == n.Inbox() && last.reason == pipeline.ReasonExpired: // before the sidecar took it in
		e.Reason, e.FailedAt, e.FirstExchange = pipeline.ReasonExpired, last.at, last.exchange
	case last.queue == n.Inbox():
		e.Reason, e.FailedAt, e.FirstExchange = deadletter.ReasonMalformed, last.at, last.exchange
	case reason != "":
		e.Reason, e.FailedAt = reason, f.millis(deadletter.HeaderDeadLetterAt)
	case e.DelayMS > 0: // it was imported, or rejected where it lies
		e.Reason = ReasonNoInbox
	default:
		e.Reason = delaying.ReasonUnroutable
	}
}

// delayIn reads a delay as the sidecar does: 0 for what is none.
func delayIn(v content.Value) int64 {
	if n, ok := v.Integer(); ok {
		return n
	}
	if text, ok := v.Text(); ok {
		n, _ := strconv.ParseInt(text, 10, 64) // the largest one, if it is beyond that
		return n
	}
	n, _ := v.Float()
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// DueAt is when a message of a delayed exchange is due, zero if it is, or if that is not known.
func (e *Entry) DueAt() time.Time {
	if e.FailedAt.IsZero() || e.DelayMS == 0 {
		return time.Time{}
	}
	return fromMillis(e.FailedAt.UnixMilli() + min(e.DelayMS, maxMillis))
}

// Exchange is where a message of a delayed exchange goes on: to the exchange that delivers if it is due, and else to the
// delayed exchange itself.
func (r Replay) Exchange(e *Entry, now time.Time) string {
	if e.remaining(now) > 0 {
		return r.Delayed.Exchange()
	}
	return r.Delayed.DeliverExchange()
}

// remaining is how much of its delay a message still has to wait, in milliseconds. Brokers note when it was parked in whole
// seconds, the last of which counts for nothing: it may be late by that, and is never early.
func (e *Entry) remaining(now time.Time) int64 {
	parked := e.FailedAt.Add(time.Second)
	if e.FailedAt.IsZero() || parked.After(now) {
		return e.DelayMS
	}
	return max(0, e.DelayMS-now.Sub(parked).Milliseconds())
}

// goesOn builds what a delayed exchange goes on with: the message as it was published, with the rest of its delay.
func (r Replay) goesOn(e *Entry, properties content.Properties, now time.Time) (Publishing, error) {
	p := Publishing{Exchange: r.Exchange(e, now), RoutingKey: e.RoutingKey, Body: e.Body}
	headers := set(r.headers(e, &properties, "", now), delaying.HeaderPublishID, content.Text(r.ID)) // or the worker would drop its own
	if remaining := e.remaining(now); remaining > 0 {
		headers = set(headers, delaying.HeaderDelay, content.Number(remaining))
	} else if e.DelayMS > 0 {
		headers = set(headers, delaying.HeaderDelay, content.Number(-e.DelayMS))
	}
	if expiration := properties.Text(content.Expiration); expiration != "" {
		headers = set(headers, delaying.HeaderExpiration, content.Text(expiration))
		properties.Remove(content.Expiration)
	}
	return p, r.complete(&p, properties, headers)
}
