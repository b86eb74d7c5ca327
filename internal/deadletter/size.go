package deadletter

import (
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Encoded sizes, in bytes.
const (
	// frameOverhead is a frame's type, channel, size and end.
	frameOverhead = 8
	// headerOverhead is the part of a content header frame before the properties: class, weight, body size and property
	// flags.
	headerOverhead = 14
	// scalarProperties are the delivery mode, the priority and the timestamp.
	scalarProperties = 1 + 1 + 8
	lengthSize       = 4
	typeSize         = 1
)

// maxEntries is how many entries of a table amqp091-go reads, whether in a delivery or in a return.
const maxEntries = 8192

// DeathOverhead is the size of x-death, x-first-death-* and x-last-death-* without names. It assumes a message that
// waited in one retry queue and was then rejected.
const DeathOverhead = 640

// RedeliveryOverhead is the size of x-delivery-count and x-acquired-count.
const RedeliveryOverhead = 64

// frameBudget bounds the frame with the properties, in bytes. It leaves room for headers that the broker adds later,
// when a message comes back to the inbox or is read from the failed queue. The broker sends frames larger than the
// limit, and client libraries close the connection over them.
func (p *Pipeline) frameBudget(v Verdict, r Route, frameMax int) int {
	if frameMax == 0 {
		return math.MaxInt
	}
	wait := p.Names.RetryQueue(v.Delay)
	switch {
	case v.Refused:
		wait = p.Names.RefusedQueue()
	case v.Action == Fail:
		return frameMax - RedeliveryOverhead
	}
	names := 4 * (len(wait) + len(v.Letter.Queue))
	for _, key := range append(r.CC, r.Key) {
		names += 2 * len(key)
	}
	return frameMax - DeathOverhead - names
}

// Fits returns an error unless the frame with the message's properties can be published and fits the budget, in bytes.
func Fits(m amqp.Publishing, budget int) error {
	if size := headerFrameSize(m); size < 0 || size > budget {
		return errNotRepublishable
	}
	return nil
}

// headerFrameSize is the size of the frame with the message's properties, in bytes. A broker closes the connection over
// a frame larger than the negotiated frame_max. It is -1 if the headers cannot be encoded, or are too many to read a
// return of the message.
func headerFrameSize(m amqp.Publishing) int {
	size := frameOverhead + headerOverhead + scalarProperties
	for _, s := range []string{
		m.ContentType, m.ContentEncoding, m.CorrelationId, m.ReplyTo, m.Expiration,
		m.MessageId, m.Type, m.UserId, m.AppId,
	} {
		size += 1 + len(s)
	}
	headers := tableSize(m.Headers)
	if headers < 0 {
		return -1
	}
	return size + headers
}

// tableSize is the encoded size of a table, in bytes. It is -1 if the table cannot be encoded or read again.
func tableSize(t amqp.Table) int {
	if len(t) > maxEntries {
		return -1
	}
	size := lengthSize
	for key, value := range t {
		n := fieldSize(value)
		if n < 0 || len(key) > maxShortString {
			return -1
		}
		size += 1 + len(key) + n
	}
	return size
}

// fieldSize is the encoded size of a value in a table, including its type. It is -1 if amqp091-go cannot write the
// type.
func fieldSize(value any) int {
	switch v := value.(type) {
	case nil:
		return typeSize
	case bool, int8, uint8:
		return typeSize + 1
	case int16, uint16:
		return typeSize + 2
	case int, int32, uint32, float32:
		return typeSize + 4
	case amqp.Decimal:
		return typeSize + 5
	case int64, float64, time.Time:
		return typeSize + 8
	case string:
		return typeSize + lengthSize + len(v)
	case []byte:
		return typeSize + lengthSize + len(v)
	case []any:
		return arraySize(v)
	case amqp.Table:
		if n := tableSize(v); n >= 0 {
			return typeSize + n
		}
	}
	return -1
}

func arraySize(values []any) int {
	size := typeSize + lengthSize
	for _, value := range values {
		n := fieldSize(value)
		if n < 0 {
			return -1
		}
		size += n
	}
	return size
}
