package delaying

import (
	"math"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
)

// Headers that the worker writes besides the headers of the levels.
const (
	// HeaderPublishID is unique for each publish. It identifies a message that the broker returns.
	HeaderPublishID = "delay-publish-id"
	// HeaderUserID is the message's original user-id. See [deadletter.HeaderUserID].
	HeaderUserID = "delay-user-id"
	// HeaderReplyTo is the message's original reply-to, if it was direct.
	HeaderReplyTo = "delay-reply-to"
	// HeaderDeliveryMode is the message's original delivery mode, if it was not persistent.
	HeaderDeliveryMode = "delay-delivery-mode"
	// HeaderExpiration is the message's original expiration, which would end a wait early.
	HeaderExpiration = "delay-expiration"
	// HeaderPriority is the message's original priority. With it, the message would overtake others and make them late.
	HeaderPriority = "delay-priority"
	// HeaderDueAt is when the message is due, in milliseconds since the epoch by the worker's clock.
	HeaderDueAt = "delay-due-at"
)

// Aside names the headers for properties that a message cannot have while the worker of a delayed exchange handles it.
func Aside() deadletter.Aside {
	return deadletter.Aside{UserID: HeaderUserID, ReplyTo: HeaderReplyTo, DeliveryMode: HeaderDeliveryMode}
}

// isOwn reports whether a header has an original property of the message, or its due time. A publisher's own header of that
// name is dropped.
func isOwn(key string) bool {
	return Aside().Has(key) || key == HeaderExpiration || key == HeaderPriority || key == HeaderDueAt
}

// ownHeaders bounds how many headers the worker adds, besides one for each level.
const ownHeaders = 10

// Publishing builds the message for the verdict. It does not change the delivery. It returns an error if the headers do
// not fit a frame or cannot be encoded.
func (e *Exchange) Publishing(v Verdict, d *amqp.Delivery, s deadletter.Stamp) (amqp.Publishing, error) {
	m := deadletter.Republishing(d, headers(v, d, s), Aside())
	m.Priority = 0
	return m, deadletter.Fits(m, s.FrameMax, e.reserved(v, d))
}

// headers copies the message's headers without the broker's and the levels', and adds the worker's own.
func headers(v Verdict, d *amqp.Delivery, s deadletter.Stamp) amqp.Table {
	h := make(amqp.Table, len(d.Headers)+len(v.way.Bits)+ownHeaders)
	_, byWorker := d.Headers[HeaderPublishID].(string)
	for key, value := range d.Headers {
		if stays(v, key, value) && (byWorker || !isOwn(key)) {
			h[key] = value
		}
	}
	h[HeaderPublishID] = s.PublishID
	if d.Expiration != "" {
		h[HeaderExpiration] = d.Expiration
	}
	if d.Priority != 0 {
		h[HeaderPriority] = int64(d.Priority)
	}
	if d.DeliveryMode != amqp.Persistent {
		h[HeaderDeliveryMode] = int64(d.DeliveryMode)
	}
	switch v.Action {
	case Delay:
		h[HeaderDelay] = waited(v.Delay)
		h[HeaderDueAt] = s.Now.Add(v.way.Wait()).UnixMilli()
		for key, waits := range v.way.Bits {
			h[key] = waits
		}
	case Refuse:
		h[deadletter.HeaderDeadLetterReason] = v.Reason
		h[deadletter.HeaderDeadLetterAt] = s.Now.UnixMilli()
		if v.Error != "" {
			deadletter.SetError(h, v.Error)
		}
	case Deliver:
	}
	return h
}

// stays reports whether a copy keeps a header of its message. The routing keys in CC and BCC belong to the publisher,
// and the message is routed by them, too. Over AMQP 1.0, they can be of any type, and a broker accepts no copy with
// such a type.
func stays(v Verdict, key string, value any) bool {
	if !deadletter.IsAddress(key) {
		return !deadletter.IsBrokers(key) && !IsBit(key)
	}
	if v.Action != Refuse {
		return true
	}
	keys, ok := value.([]any)
	return ok && !slices.ContainsFunc(keys, func(key any) bool { _, text := key.(string); return !text })
}

// waited is the x-delay that a consumer reads. Like the plugin, it uses 32 bits if they are enough. Some clients (pika)
// read a negative number of 64 bits as a huge one.
func waited(delay time.Duration) any {
	ms := -delay.Milliseconds()
	if ms < math.MinInt32 {
		return ms
	}
	return int32(ms) //nolint:gosec // fits
}

// IsBit reports whether a header can lead a message through the levels.
func IsBit(key string) bool {
	digits, found := strings.CutPrefix(key, delayed.BitKeyPrefix)
	return found && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// entryOverhead is the size of an x-death entry without names, in bytes.
const entryOverhead = 128

// reserved is how many bytes of the frame with the properties stay free for the entries of x-death that the broker
// adds: one in each level, and one when a consumer rejects the message.
func (e *Exchange) reserved(v Verdict, d *amqp.Delivery) int {
	if v.Action == Refuse {
		return deadletter.RedeliveryOverhead
	}
	keys := len(v.key)
	if more, ok := d.Headers[deadletter.HeaderCC].([]any); ok {
		for _, key := range more {
			text, _ := key.(string)
			keys += keyOverhead + len(text)
		}
	}
	level := len(e.Names.Level(v.way.Entry))
	size := deadletter.DeathOverhead + 4*level + 2*keys
	if v.SetAside {
		size += entryOverhead + 2*len(e.Names.Refused()) + keys
	}
	for _, waits := range v.way.Bits {
		if waits {
			size += entryOverhead + 2*level + keys
		}
	}
	return size
}

// keyOverhead is the size of a routing key in x-death without the key itself, in bytes.
const keyOverhead = 5
