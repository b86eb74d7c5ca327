package deadletter

import (
	"maps"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Headers that the worker writes. They do not begin with "x-", which belongs to the broker. Times are int64
// milliseconds since the epoch, durations int64 milliseconds, counts int64.
const (
	// HeaderCount is the number of failed attempts so far.
	HeaderCount = "retry-count"
	// HeaderMaxAttempts is the number of deliveries allowed in total, the first one included.
	HeaderMaxAttempts = "retry-max-attempts"
	// HeaderPipeline is the pipeline's name.
	HeaderPipeline = "retry-pipeline"
	// HeaderQueue is the work queue that the message failed in. A consumer that publishes to the dead-letter exchange
	// also sets it.
	HeaderQueue = "retry-queue"
	// HeaderExchange is the exchange that the message was first published to.
	HeaderExchange = "retry-exchange"
	// HeaderRoutingKey is the routing key that the message was first published with.
	HeaderRoutingKey = "retry-routing-key"
	// HeaderPublishID is unique for each publish. It identifies a message that the broker returns.
	HeaderPublishID = "retry-publish-id"
	// HeaderReason is why the message was dead-lettered last.
	HeaderReason = "retry-reason"
	// HeaderFirstFailedAt is when the message failed first.
	HeaderFirstFailedAt = "retry-first-failed-at"
	// HeaderLastFailedAt is when the message failed last.
	HeaderLastFailedAt = "retry-last-failed-at"
	// HeaderDelay is the delay chosen this time. If the wait takes several delays, it is the time that the consumer
	// asked for.
	HeaderDelay = "retry-delay-ms"
	// HeaderDueAt is when the wait ends. A message has it only while it must come back to the worker for another delay.
	HeaderDueAt = "retry-due-at"
	// HeaderHistory is a JSON array of the failures, newest first. See [Failure].
	HeaderHistory = "retry-history"
	// HeaderUserID is the user-id property that the message had before the worker republished it. A broker refuses a
	// user-id that is not the publisher's own.
	HeaderUserID = "retry-user-id"
	// HeaderReplyTo is the reply-to property that the message had before the worker republished it, if it was direct
	// (amq.rabbitmq.reply-to). See [DirectReplyTo].
	HeaderReplyTo = "retry-reply-to"
	// HeaderDeliveryMode is the message's original delivery mode, if it was not persistent.
	HeaderDeliveryMode = "retry-delivery-mode"
)

// Headers of messages in the failed queue.
const (
	// HeaderDeadLetterReason is why the message is no longer retried: a reason.
	HeaderDeadLetterReason = "dead-letter-reason"
	// HeaderDeadLetterAt is when the message was parked.
	HeaderDeadLetterAt = "dead-letter-at"
	// HeaderDetour is why the message is in the pipeline's failed queue although its work queue has one of its own: a
	// detour. See [Detour].
	HeaderDetour = "dead-letter-detour"
	// HeaderDeadLetterError is the consumer's error text, if it supplied one. For a message that AMQP 0-9-1 cannot
	// carry, it says what the worker changed.
	HeaderDeadLetterError = "dead-letter-error"
	// HeaderDeadLetterException is the consumer's exception or stack trace, if it supplied one.
	HeaderDeadLetterException = "dead-letter-exception"
)

// Hints of a consumer that publishes to the dead-letter exchange itself. The worker obeys them once and then removes
// them. Publishers can use the name of HeaderHint for something else, so other values stay.
const (
	// HeaderHint says what to do with the message. Only the value "never" has an effect. See [HintNever].
	HeaderHint = "retry"
	// HeaderAfter asks for a wait of at least this many milliseconds. The worker picks the shortest configured delay
	// that is long enough, or combines several delays.
	HeaderAfter = "retry-after-ms"
	// HeaderRetryAfter asks for the same in seconds, or until a date, as Retry-After in HTTP does. The worker reads it only of
	// messages that a consumer publishes, and if retry-after-ms cannot be read. Elsewhere the name is a publisher's.
	HeaderRetryAfter = "retry-after"
	// HintNever sends the message to the failed queue at once. Case does not matter.
	HintNever = "never"
)

// The worker's reasons for giving a message up. The broker's reasons, see pipeline.Reasons, appear in the same
// header.
const (
	// ReasonExhausted: the message failed as often as it is allowed to.
	ReasonExhausted = "exhausted"
	// ReasonTooOld: with its next delay, the message would exceed the pipeline's maximum age.
	ReasonTooOld = "too_old"
	// ReasonRetryAfterTooLong: the consumer asked for a wait that takes too many delays.
	ReasonRetryAfterTooLong = "retry_after_too_long"
	// ReasonUnrecoverable: the consumer said that the message would never succeed.
	ReasonUnrecoverable = "unrecoverable"
	// ReasonUnknownQueue: the work queue is not known, or no longer exists.
	ReasonUnknownQueue = "unknown_queue"
	// ReasonUnreadable: the number of attempts or their age is not known, since a client sent the header back in a form that
	// cannot be read.
	ReasonUnreadable = "unreadable_header"
	// ReasonMalformed: the message's dead-letter headers make no sense, or AMQP 0-9-1 cannot carry it.
	ReasonMalformed = "malformed"
	// ReasonWorkerError: the worker has no way to send the message back.
	ReasonWorkerError = "worker_error"
)

// HeaderCC has additional routing keys.
const HeaderCC = "CC"

const (
	headerDeath = "x-death"
	headerBCC   = "BCC"
)

// isOwn reports whether the header's name belongs to workers and to consumers that publish to the dead-letter exchange.
// Any other name belongs to applications.
func isOwn(key string) bool {
	switch key {
	case HeaderCount, HeaderMaxAttempts, HeaderPipeline, HeaderQueue, HeaderExchange, HeaderRoutingKey, HeaderPublishID, HeaderReason,
		HeaderFirstFailedAt, HeaderLastFailedAt, HeaderDelay, HeaderDueAt, HeaderHistory, HeaderUserID, HeaderReplyTo, HeaderDeliveryMode,
		HeaderAfter:
		return true
	}
	return false
}

// IsForgotten reports whether a header is about earlier attempts. A replayed message must not have it, so that the
// worker counts from 1 again. Headers about where the message belongs and came from stay.
func IsForgotten(key string) bool {
	switch key {
	case HeaderCount, HeaderMaxAttempts, HeaderPublishID, HeaderReason, HeaderFirstFailedAt, HeaderLastFailedAt, HeaderDelay,
		HeaderDueAt, HeaderHistory, HeaderAfter, HeaderDeadLetterReason, HeaderDeadLetterAt, HeaderDetour, HeaderDeadLetterError,
		HeaderDeadLetterException:
		return true
	}
	return false
}

// DirectReplyTo is a reply-to that the broker replaces by the publishing channel's address, if that channel awaits
// replies. Otherwise the broker closes the channel, and its outstanding messages would be published once more. A queue
// can get a message with this reply-to only from other protocols than AMQP 0-9-1, and no consumer could reply to it.
// The replaced address differs from it, and passes.
const DirectReplyTo = "amq.rabbitmq.reply-to"

// Aside names the headers for properties that a message cannot have while a worker handles it.
type Aside struct{ UserID, ReplyTo, DeliveryMode string }

// Has reports whether the key is one of these headers.
func (a Aside) Has(key string) bool {
	return key == a.UserID || key == a.ReplyTo || key == a.DeliveryMode
}

// AsideOfPipelines are the headers that a pipeline's worker uses.
func AsideOfPipelines() Aside { return Aside{HeaderUserID, HeaderReplyTo, HeaderDeliveryMode} }

// Republishing makes a message that can be published again from a delivery. It has these headers, plus headers for the
// properties that must not be republished. It is persistent, and has no expiration.
func Republishing(d *amqp.Delivery, headers amqp.Table, aside Aside) amqp.Publishing {
	m := amqp.Publishing{
		Headers:         headers,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    amqp.Persistent,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
	}
	// The broker would close the publisher's channel over these properties.
	if d.UserId != "" {
		headers[aside.UserID] = d.UserId
	}
	if m.ReplyTo = d.ReplyTo; d.ReplyTo == DirectReplyTo {
		m.ReplyTo, headers[aside.ReplyTo] = "", d.ReplyTo
	}
	return m
}

// Copy makes a message that can replace one that AMQP 0-9-1 cannot carry. The reason why becomes its dead-letter-error.
// whole is false if the headers do not fit a frame and are left out.
func Copy(d *amqp.Delivery, why string, frameMax int, aside Aside) (m amqp.Publishing, whole bool) {
	m = Republishing(d, amqp.Table{}, aside)
	SetError(m.Headers, why)
	own := m.Headers
	m.Headers = make(amqp.Table, len(d.Headers)+len(own))
	for key, value := range d.Headers {
		if !IsAddress(key) && !IsCount(key) {
			m.Headers[key] = value
		}
	}
	maps.Copy(m.Headers, own)
	if fit(m, frameMax, RedeliveryOverhead) == nil {
		return m, true
	}
	m.Headers = own
	return m, false
}

// IsCount reports whether a header counts the deliveries of one stay in a queue.
func IsCount(key string) bool { return key == "x-delivery-count" || key == "x-acquired-count" }
