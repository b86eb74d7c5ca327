package deadletter

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// errNotRepublishable says that a message cannot be published again, since its headers cannot be encoded or do not fit
// a frame. The broker must move it: if the worker rejects it without requeue, the inbox's dead-letter exchange takes
// the untouched original to the failed queue.
var errNotRepublishable = errors.New("the headers do not fit a frame of the connection: raise the broker's frame_max")

// Longest texts of a consumer that are passed through, in bytes.
const (
	maxErrorText     = 2 << 10
	maxExceptionText = 8 << 10
)

// ownHeaders bounds how many headers the worker adds.
const ownHeaders = 18

// Stamp has the values that a publish needs besides the message.
type Stamp struct {
	Now time.Time
	// PublishID is unique per publish.
	PublishID string
	// FrameMax is the connection's negotiated limit in bytes. It is 0 if there is no limit.
	FrameMax int
}

// Publishing builds the message for the verdict. It does not change the delivery. The error is [errNotRepublishable].
func (p *Pipeline) Publishing(v Verdict, d *amqp.Delivery, s Stamp) (amqp.Publishing, error) {
	route := p.Route(v)
	m := Republishing(d, p.headers(v, route, d, s), AsideOfPipelines())
	return m, fit(m, s.FrameMax, p.reserved(v, route))
}

// headers copies the message's headers without the broker's, and adds the worker's own.
func (p *Pipeline) headers(v Verdict, route Route, d *amqp.Delivery, s Stamp) amqp.Table {
	h := make(amqp.Table, len(d.Headers)+ownHeaders)
	_, byWorker := shortString(d.Headers[HeaderPublishID])
	for key, value := range d.Headers {
		if !v.Letter.drops(key, byWorker) {
			h[key] = value
		}
	}
	for _, key := range []string{HeaderAfter, HeaderDueAt, HeaderDeadLetterReason, HeaderDeadLetterAt, HeaderDetour} {
		delete(h, key)
	}
	if v.Letter.retryAfter {
		delete(h, HeaderRetryAfter)
	}
	if isNever(h[HeaderHint]) { // any other value is the publisher's own
		delete(h, HeaderHint)
	}
	if v.Letter.dead {
		// A nack carries no text, so these headers describe an earlier failure.
		delete(h, HeaderDeadLetterError)
		delete(h, HeaderDeadLetterException)
	}
	if v.Error != "" {
		h[HeaderDeadLetterError] = strings.TrimSuffix(v.Error+"; "+asText(h[HeaderDeadLetterError]), "; ")
	}
	truncate(h, HeaderDeadLetterError, maxErrorText)
	truncate(h, HeaderDeadLetterException, maxExceptionText)

	h[HeaderPublishID] = s.PublishID
	if len(route.CC) > 0 {
		h[HeaderCC] = addresses(route.CC)
	}
	if d.DeliveryMode != amqp.Persistent { // so no worker has published it
		h[HeaderDeliveryMode] = int64(d.DeliveryMode)
	}
	if v.Action == Fail {
		h[HeaderDeadLetterReason] = v.Reason
		h[HeaderDeadLetterAt] = s.Now.UnixMilli()
		if v.Detour != "" {
			h[HeaderDetour] = string(v.Detour)
		}
	}
	if v.waitsOn() {
		h[HeaderDueAt] = v.dueAt
	}
	if !v.Letter.Lost {
		delete(h, HeaderDelay) // it belongs to the failure before
		p.setProgress(h, v, s.Now)
	}
	return h
}

// drops reports whether a header is left out. byWorker says that a worker has published the message.
func (l Letter) drops(key string, byWorker bool) bool {
	return IsBrokers(key) || l.foreign && isOwn(key) && (!byWorker || !AsideOfPipelines().Has(key))
}

// setProgress sets the headers that change with each failed attempt.
func (p *Pipeline) setProgress(h amqp.Table, v Verdict, now time.Time) {
	l, at := v.Letter, now.UnixMilli()
	first := l.FirstFailedAt
	if first == 0 || first > at { // another clock wrote a future time
		first = at
	}
	h[HeaderCount] = l.Count
	h[HeaderMaxAttempts] = p.maxAttemptsIn(l.Queue)
	h[HeaderPipeline] = string(p.Names)
	h[HeaderExchange] = l.Exchange
	h[HeaderRoutingKey] = l.RoutingKey
	h[HeaderReason] = l.Reason
	h[HeaderFirstFailedAt] = first
	h[HeaderLastFailedAt] = at
	h[HeaderHistory] = history(v, now)
	if l.Queue != "" {
		h[HeaderQueue] = l.Queue
	}
	if v.Action == Retry {
		h[HeaderDelay] = v.wait().Milliseconds()
	}
}

// IsBrokers reports whether a header is about one stay in a queue. In a new publish, it would make the broker drop the
// message as a dead-lettering cycle, or route it to an old copy address.
func IsBrokers(key string) bool {
	return key == headerDeath || IsAddress(key) || IsCount(key) ||
		strings.HasPrefix(key, "x-first-death-") || strings.HasPrefix(key, "x-last-death-")
}

// IsAddress reports whether a header has additional routing keys, which the broker routes by as well.
func IsAddress(key string) bool { return key == HeaderCC || key == headerBCC }

func addresses(keys []string) []any {
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = key
	}
	return list
}

// SetError sets a message's dead-letter-error.
func SetError(h amqp.Table, text string) {
	h[HeaderDeadLetterError] = text
	truncate(h, HeaderDeadLetterError, maxErrorText)
}

// truncate shortens a text to the limit, in bytes, without splitting a character.
func truncate(h amqp.Table, key string, limit int) {
	text, ok := h[key].(string)
	if !ok || len(text) <= limit {
		return
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	h[key] = text[:limit]
}

// shorten removes this many bytes from a text, or removes the whole header.
func shorten(h amqp.Table, key string, excess int) {
	text, _ := h[key].(string)
	if len(text) <= excess {
		delete(h, key)
		return
	}
	truncate(h, key, len(text)-excess)
}

// fit shortens headers that are too large. It drops the oldest failures first, and then the ends of the texts.
func fit(m amqp.Publishing, frameMax, reserved int) error {
	if n := excess(m, frameMax, reserved); n > 0 {
		trimHistory(m.Headers, n)
	}
	for _, text := range []string{HeaderDeadLetterException, HeaderDeadLetterError} {
		if n := excess(m, frameMax, reserved); n > 0 {
			shorten(m.Headers, text, n)
		}
	}
	return Fits(m, frameMax, reserved)
}
