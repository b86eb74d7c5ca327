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

// reserved is how many bytes of the frame with the properties stay free for headers that the broker adds later, when a
// message comes back to the inbox or is read from the failed queue. The broker sends frames larger than the limit, and
// client libraries close the connection over them.
func (p *Pipeline) reserved(v Verdict, r Route) int {
	wait := p.Names.RetryQueue(v.Delay)
	switch {
	case v.Refused:
		wait = p.Names.RefusedQueue()
	case v.Action == Fail:
		return RedeliveryOverhead
	}
	names := 4 * (len(wait) + len(v.Letter.Queue))
	for _, key := range append(r.CC, r.Key) {
		names += 2 * len(key)
	}
	return DeathOverhead + names
}

// Fits returns an error unless the message's properties can be published in a frame that leaves this many bytes free.
// A frameMax of 0 is no limit.
func Fits(m amqp.Publishing, frameMax, reserved int) error {
	if excess(m, frameMax, reserved) > 0 {
		return errNotRepublishable
	}
	return nil
}

// excess is how many bytes too large the frame with the message's properties is. It is 0 or less if the frame fits.
func excess(m amqp.Publishing, frameMax, reserved int) int {
	size := headerFrameSize(m)
	switch {
	case size < 0:
		return math.MaxInt
	case frameMax == 0:
		return 0
	}
	return size + reserved - frameMax
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
	headers := sizer{bytes: size}
	headers.table(m.Headers)
	if headers.invalid {
		return -1
	}
	return headers.bytes
}

// sizer adds up encoded sizes, in bytes.
type sizer struct {
	bytes int
	// invalid says that amqp091-go cannot write a value, or could not read it again.
	invalid bool
}

func (s *sizer) table(t amqp.Table) {
	s.invalid = s.invalid || len(t) > maxEntries
	s.bytes += lengthSize
	for key, value := range t {
		s.invalid = s.invalid || len(key) > maxShortString
		s.bytes += 1 + len(key)
		s.field(value)
	}
}

// field adds a value in a table, and its type.
func (s *sizer) field(value any) {
	s.bytes += typeSize
	switch v := value.(type) {
	case nil:
	case bool, int8, uint8:
		s.bytes++
	case int16, uint16:
		s.bytes += 2
	case int, int32, uint32, float32:
		s.bytes += 4
	case amqp.Decimal:
		s.bytes += 5
	case int64, float64, time.Time:
		s.bytes += 8
	case string:
		s.bytes += lengthSize + len(v)
	case []byte:
		s.bytes += lengthSize + len(v)
	case []any:
		s.bytes += lengthSize
		for _, element := range v {
			s.field(element)
		}
	case amqp.Table:
		s.table(v)
	default:
		s.invalid = true
	}
}
