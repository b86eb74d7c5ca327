package failed

import (
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// ReasonNoInbox means that the broker itself routed the message into the unrouted queue. The inbox was not bound to the
// delayed exchange, so the sidecar could not delay the message.
const ReasonNoInbox = "no_inbox"

// UnroutedOf is the delayed exchange whose unrouted queue has this name, "" if the name does not end like an unrouted
// queue's.
func UnroutedOf(queue string) delayed.Names {
	return ownerOf[delayed.Names](queue, delayed.Names("").UnroutedQueue())
}

// AsideIn are the headers that keep moved properties in messages of this queue.
func AsideIn(queue string) deadletter.Aside {
	if UnroutedOf(queue) != "" {
		return delaying.Aside()
	}
	return deadletter.AsideOfPipelines()
}

// isUnrouted reports whether the message reached the queue on a route that only a delayed exchange has.
func (e *Entry) isUnrouted(deaths []death) bool {
	n := UnroutedOf(e.Queue)
	if n == "" {
		return false
	}
	own := []string{n.Exchange(), n.DeliverExchange(), n.UnroutedExchange()}
	_, isLevel := n.LevelOf(e.Exchange) // a message that passes a level keeps the level's exchange
	return isLevel || slices.Contains(own, e.Exchange) || len(deaths) > 0 && deaths[0].queue == n.Inbox()
}

// readUnrouted reads a message that a delayed exchange could not delay, or could not route when it was due.
func (e *Entry) readUnrouted(f fields, deaths []death) {
	n := UnroutedOf(e.Queue)
	e.System, e.FirstExchange = SystemDelayed, n.Exchange()
	e.Error, e.Exception = f.text(deadletter.HeaderDeadLetterError), f.text(deadletter.HeaderDeadLetterException)
	// The sidecar negates the delay of a message that is due.
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
	case last.queue == n.Inbox() && last.reason == pipeline.ReasonExpired: // before the sidecar took the message
		e.Reason, e.FailedAt, e.FirstExchange = pipeline.ReasonExpired, last.at, last.exchange
	case last.queue == n.Inbox():
		e.Reason, e.FailedAt, e.FirstExchange = deadletter.ReasonMalformed, last.at, last.exchange
	case reason != "":
		e.Reason, e.FailedAt = reason, f.millis(deadletter.HeaderDeadLetterAt)
	case e.DelayMS > 0: // imported, or rejected in the unrouted queue
		e.Reason = ReasonNoInbox
	default:
		e.Reason = delaying.ReasonUnroutable
	}
	if !e.FailedAt.IsZero() && e.DelayMS > 0 {
		e.Due = fromMillis(e.FailedAt.UnixMilli() + min(e.DelayMS, maxMillis))
	}
}

// delayIn reads a delay as the sidecar does; 0 if the value is not a delay.
func delayIn(v content.Value) int64 {
	var ms int64
	if text, ok := v.Text(); ok {
		ms, _ = deadletter.Milliseconds(text)
	} else if n, ok := v.Float(); ok {
		ms, _ = deadletter.Milliseconds(n)
	} else {
		ms, _ = v.Integer()
	}
	return ms
}

// Exchange is the exchange to publish a message of a delayed exchange to. A message that is due goes to the exchange that
// delivers, any other to the delayed exchange itself.
func (r Replay) Exchange(e *Entry, now time.Time) string {
	if e.remaining(now) > 0 {
		return r.Delayed.Exchange()
	}
	return r.Delayed.DeliverExchange()
}

// remaining is the rest of the message's delay, in milliseconds. Brokers note the time of parking in whole seconds, so a
// second of waiting is not counted. The message can be late by a second, but is never early.
func (e *Entry) remaining(now time.Time) int64 {
	parked := e.FailedAt.Add(time.Second)
	if e.FailedAt.IsZero() || parked.After(now) {
		return e.DelayMS
	}
	return max(0, e.DelayMS-now.Sub(parked).Milliseconds())
}

// goesOn builds the message for a delayed exchange: the original message, with the rest of its delay.
func (r Replay) goesOn(e *Entry, properties content.Properties, now time.Time) (Publishing, error) {
	p := Publishing{Exchange: r.Exchange(e, now), RoutingKey: e.RoutingKey, Body: e.Body}
	headers := set(r.headers(e, &properties, "", now), delaying.HeaderPublishID, content.Text(r.ID)) // or the sidecar drops moved properties
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
