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

// Headers that the worker writes besides those of the levels.
const (
	// HeaderPublishID is unique per publish: a basic.return carries no delivery tag.
	HeaderPublishID = "delay-publish-id"
	// HeaderUserID, HeaderReplyTo and HeaderDeliveryMode are of a delayed message what [deadletter.HeaderUserID] and its like are of
	// a retried one.
	HeaderUserID       = "delay-user-id"
	HeaderReplyTo      = "delay-reply-to"
	HeaderDeliveryMode = "delay-delivery-mode"
	// HeaderExpiration is the expiration that the message was published with: it would end a wait early.
	HeaderExpiration = "delay-expiration"
	// HeaderPriority is its priority: it would overtake others, and they would be late.
	HeaderPriority = "delay-priority"
)

// Aside are the headers for properties that a message cannot have while the worker of a delayed exchange has it.
func Aside() deadletter.Aside {
	return deadletter.Aside{UserID: HeaderUserID, ReplyTo: HeaderReplyTo, DeliveryMode: HeaderDeliveryMode}
}

// isAside reports whether a header has a property that the message had when it was published.
func isAside(key string) bool {
	return Aside().Has(key) || key == HeaderExpiration || key == HeaderPriority
}

// ownHeaders is how many we add at most, besides one for each level.
const ownHeaders = 9

// Publishing builds the message for the verdict. The delivery is left as it is. The error says that its headers do not fit a
// frame, or cannot be encoded.
func (e *Exchange) Publishing(v Verdict, d *amqp.Delivery, s deadletter.Stamp) (amqp.Publishing, error) {
	m := deadletter.Republishing(d, headers(v, d, s), Aside())
	m.Priority = 0
	return m, deadletter.Fits(m, e.frameBudget(v, d, s.FrameMax))
}

// headers copies the message's headers but for those of the broker and of the levels, and adds ours.
func headers(v Verdict, d *amqp.Delivery, s deadletter.Stamp) amqp.Table {
	h := make(amqp.Table, len(d.Headers)+len(v.way.Bits)+ownHeaders)
	_, byWorker := d.Headers[HeaderPublishID].(string)
	for key, value := range d.Headers {
		if stays(v, key, value) && (byWorker || !isAside(key)) {
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

// stays reports whether a copy has a header of its message. The routing keys in CC and BCC are the publisher's: the message is routed
// by them, too. Over AMQP 1.0 they can be anything, and a broker accepts no copy with that.
func stays(v Verdict, key string, value any) bool {
	if !deadletter.IsAddress(key) {
		return !deadletter.IsBrokers(key) && !isBit(key)
	}
	if v.Action != Refuse {
		return true
	}
	keys, ok := value.([]any)
	return ok && !slices.ContainsFunc(keys, func(key any) bool { _, text := key.(string); return !text })
}

// waited is the delay of a message as its consumer reads it: of 32 bits where they are enough, as the plugin writes it. There are
// clients to which a negative number of 64 bits is a huge one (pika).
func waited(delay time.Duration) any {
	ms := -delay.Milliseconds()
	if ms < math.MinInt32 {
		return ms
	}
	return int32(ms) //nolint:gosec // fits
}

// isBit reports whether a header could lead a message through the levels.
func isBit(key string) bool {
	digits, found := strings.CutPrefix(key, delayed.BitKeyPrefix)
	return found && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// entryOverhead is what an entry of x-death takes besides names.
const entryOverhead = 128

// frameBudget is how large the frame with the properties may be. There has to be room for what the broker adds: an entry of
// x-death in each level, and one when a consumer rejects the message.
func (e *Exchange) frameBudget(v Verdict, d *amqp.Delivery, frameMax int) int {
	if frameMax == 0 {
		return math.MaxInt
	}
	if v.Action == Refuse {
		return frameMax - deadletter.RedeliveryOverhead
	}
	keys := len(v.key)
	if more, ok := d.Headers[deadletter.HeaderCC].([]any); ok {
		for _, key := range more {
			text, _ := key.(string)
			keys += keyOverhead + len(text)
		}
	}
	level := len(e.Names.Level(v.way.Entry))
	budget := frameMax - deadletter.DeathOverhead - 4*level - 2*keys
	if v.SetAside {
		budget -= entryOverhead + 2*len(e.Names.Refused()) + keys
	}
	for _, waits := range v.way.Bits {
		if waits {
			budget -= entryOverhead + 2*level + keys
		}
	}
	return budget
}

// keyOverhead is what a routing key takes in x-death besides itself.
const keyOverhead = 5
