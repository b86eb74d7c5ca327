package deadletter

import (
	"maps"
	"math"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Headers that the worker writes. They do not begin with "x-", which belongs to the broker. Times
// are int64 milliseconds since the epoch, durations int64 milliseconds, counts int64.
const (
	// HeaderCount is the number of failed attempts so far.
	HeaderCount = "retry-count"
	// HeaderMaxAttempts is the number of deliveries allowed in total, the first one included.
	HeaderMaxAttempts = "retry-max-attempts"
	// HeaderPipeline is the pipeline's name.
	HeaderPipeline = "retry-pipeline"
	// HeaderQueue is the work queue that the message failed in. A consumer that publishes to the
	// dead-letter exchange itself sets it, too.
	HeaderQueue = "retry-queue"
	// HeaderExchange is the exchange that the message was first published to.
	HeaderExchange = "retry-exchange"
	// HeaderRoutingKey is the routing key that the message was first published with.
	HeaderRoutingKey = "retry-routing-key"
	// HeaderPublishID is unique per publish: a basic.return carries no delivery tag.
	HeaderPublishID = "retry-publish-id"
	// HeaderReason is why the message was dead-lettered last.
	HeaderReason = "retry-reason"
	// HeaderFirstFailedAt is when the message failed first.
	HeaderFirstFailedAt = "retry-first-failed-at"
	// HeaderLastFailedAt is when the message failed last.
	HeaderLastFailedAt = "retry-last-failed-at"
	// HeaderDelay is the delay chosen this time, or what the consumer asked for if that takes several.
	HeaderDelay = "retry-delay-ms"
	// HeaderDueAt is until when the message waits, as long as it has to come back to the worker for another wait.
	HeaderDueAt = "retry-due-at"
	// HeaderHistory is a JSON array of [Failure], newest first.
	HeaderHistory = "retry-history"
	// HeaderUserID is the user-id property that the message had before the worker republished it: a
	// broker refuses a user-id that is not the publisher's own.
	HeaderUserID = "retry-user-id"
	// HeaderReplyTo is the reply-to property that the message had before the worker republished it, if it was
	// [DirectReplyTo].
	HeaderReplyTo = "retry-reply-to"
	// HeaderDeliveryMode is the delivery mode that the message had if it was not persistent.
	HeaderDeliveryMode = "retry-delivery-mode"
)

// Headers of messages in the failed queue.
const (
	// HeaderDeadLetterReason is why the message is not retried any more; see the Reason constants.
	HeaderDeadLetterReason = "dead-letter-reason"
	// HeaderDeadLetterAt is when it was parked.
	HeaderDeadLetterAt = "dead-letter-at"
	// HeaderDetour is why it is in the pipeline's failed queue although its work queue has one of its own; see [Detour].
	HeaderDetour = "dead-letter-detour"
	// HeaderDeadLetterError is the consumer's error text, if it supplied one; or what the worker changed about
	// a message that AMQP 0-9-1 cannot carry.
	HeaderDeadLetterError = "dead-letter-error"
	// HeaderDeadLetterException is the consumer's exception or stack trace, if it supplied one.
	HeaderDeadLetterException = "dead-letter-exception"
)

// Hints of a consumer that publishes to the dead-letter exchange itself. They are obeyed once and
// then removed. A publisher may use the name of HeaderHint for something else: other values stay.
const (
	// HeaderHint says what to do with the message; [HintNever] is the only value that says so.
	HeaderHint = "retry"
	// HeaderAfter asks for a wait of so many milliseconds at least: the shortest configured delay that is not
	// shorter, or several delays.
	HeaderAfter = "retry-after-ms"
	// HintNever sends the message to the failed queue at once.
	HintNever = "never"
)

// Reasons of the worker for giving a message up. Those of the broker, see
// [topology.Reasons], stand in the same header.
const (
	// ReasonExhausted: the message failed as often as it may.
	ReasonExhausted = "exhausted"
	// ReasonTooOld: the message would come back later after its first failure than it may.
	ReasonTooOld = "too_old"
	// ReasonRetryAfterTooLong: the consumer asked for a wait that takes too many delays.
	ReasonRetryAfterTooLong = "retry_after_too_long"
	// ReasonUnrecoverable: the consumer said that it would never succeed.
	ReasonUnrecoverable = "unrecoverable"
	// ReasonUnknownQueue: nobody knows the work queue, or it is gone.
	ReasonUnknownQueue = "unknown_queue"
	// ReasonMalformed: the message's dead-letter headers make no sense, or AMQP 0-9-1 cannot carry it.
	ReasonMalformed = "malformed"
	// ReasonWorkerError: the worker has no way to send the message back.
	ReasonWorkerError = "worker_error"
)

// HeaderCC has more routing keys.
const HeaderCC = "CC"

const (
	headerDeath = "x-death"
	headerBCC   = "BCC"
)

// isOwn reports whether only a worker, or a consumer that publishes to the dead-letter exchange, gives the header its meaning.
// Any other name is an application's.
func isOwn(key string) bool {
	switch key {
	case HeaderCount, HeaderMaxAttempts, HeaderPipeline, HeaderQueue, HeaderExchange, HeaderRoutingKey, HeaderPublishID, HeaderReason,
		HeaderFirstFailedAt, HeaderLastFailedAt, HeaderDelay, HeaderDueAt, HeaderHistory, HeaderUserID, HeaderReplyTo, HeaderDeliveryMode,
		HeaderAfter:
		return true
	}
	return false
}

// IsForgotten reports whether a header is about earlier attempts, so that a replayed message must not have it:
// the worker then counts from 1. What says where the message belongs and came from is not.
func IsForgotten(key string) bool {
	switch key {
	case HeaderCount, HeaderMaxAttempts, HeaderPublishID, HeaderReason, HeaderFirstFailedAt, HeaderLastFailedAt, HeaderDelay,
		HeaderDueAt, HeaderHistory, HeaderAfter, HeaderDeadLetterReason, HeaderDeadLetterAt, HeaderDetour, HeaderDeadLetterError,
		HeaderDeadLetterException:
		return true
	}
	return false
}

// DirectReplyTo is the reply-to that a broker replaces by the address of the channel that publishes, if that awaits replies.
// It closes any other channel over it, and what is under way there would be published once more. Only from other
// protocols than AMQP 0-9-1 can a queue have a message with it; no consumer could answer to it. The address that
// took its place is another one, and passes.
const DirectReplyTo = "amq.rabbitmq.reply-to"

// Aside names the headers for properties that a message cannot have while a worker has it.
type Aside struct{ UserID, ReplyTo, DeliveryMode string }

// Has reports whether it is one of these headers.
func (a Aside) Has(key string) bool {
	return key == a.UserID || key == a.ReplyTo || key == a.DeliveryMode
}

// AsideOfPipelines are the headers that a pipeline's worker uses.
func AsideOfPipelines() Aside { return Aside{HeaderUserID, HeaderReplyTo, HeaderDeliveryMode} }

// Republishing is the message of a delivery as it can be published again, with these headers, to which it adds the properties that
// cannot be. It is persistent, and has no expiration.
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
	// The broker would close the channel of whoever did not set these.
	if d.UserId != "" {
		headers[aside.UserID] = d.UserId
	}
	if m.ReplyTo = d.ReplyTo; d.ReplyTo == DirectReplyTo {
		m.ReplyTo, headers[aside.ReplyTo] = "", d.ReplyTo
	}
	return m
}

// Copy is the message of a delivery as it can be published in the place of one that AMQP 0-9-1 cannot carry. Why it is another
// becomes its dead-letter-error. It says false if the headers are left out, since they do not fit a frame.
func Copy(d *amqp.Delivery, why string, frameMax int, aside Aside) (m amqp.Publishing, whole bool) {
	m = Republishing(d, amqp.Table{}, aside)
	SetError(m.Headers, why)
	own := m.Headers
	m.Headers = make(amqp.Table, len(d.Headers)+len(own))
	for key, value := range d.Headers {
		if !IsAddress(key) && !isCount(key) {
			m.Headers[key] = value
		}
	}
	maps.Copy(m.Headers, own)
	budget := math.MaxInt
	if frameMax > 0 {
		budget = frameMax - RedeliveryOverhead
	}
	if fit(m, budget) == nil {
		return m, true
	}
	m.Headers = own
	return m, false
}

// isCount reports whether a header counts the deliveries of one stay in a queue.
func isCount(key string) bool { return key == "x-delivery-count" || key == "x-acquired-count" }
