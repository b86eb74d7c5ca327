package deadletter

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// source makes headers of the bytes that a fuzzer invents; once they are used up all values are nil.
type source struct{ data []byte }

// words are what the pipeline "orders" takes for more than just any text.
var words = []string{
	"", "orders", "orders.created", "orders.paid", "orders.inbox", "orders.retry.5s", "new", "rejected", "expired", "maxlen",
	"never", "delay:5s", "return:orders.created", "bills", strings.Repeat("x", 255), strings.Repeat("y", 256), strings.Repeat("z", 5000),
	`[{"attempt":1,"at":1600000000000,"reason":"rejected","delay_ms":5000}]`, `[{"reason":"<&>"},{"at":-1}]`, "[null]",
}

// names are the headers that mean something.
var names = []string{
	headerDeath, HeaderCount, HeaderPipeline, HeaderQueue, HeaderExchange, HeaderRoutingKey, HeaderReason, HeaderFirstFailedAt,
	HeaderHistory, HeaderHint, HeaderAfter, HeaderPublishID, HeaderUserID, HeaderDeliveryMode, HeaderDelay, HeaderMaxAttempts,
	HeaderDeadLetterReason, HeaderDeadLetterAt, HeaderDeadLetterError, HeaderDeadLetterException, HeaderCC, headerBCC,
	"x-first-death-queue", "queue", "reason", "exchange", "routing-keys", "tenant", HeaderDueAt,
}

func (s *source) next() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *source) number() int64 {
	var b [8]byte
	n := copy(b[:], s.data)
	s.data = s.data[n:]
	return int64(binary.BigEndian.Uint64(b[:]))
}

// text is a word, or as many bytes as the next one says.
func (s *source) text() string {
	b := int(s.next())
	if b < 128 {
		return words[b%len(words)]
	}
	n := min(b-128, len(s.data))
	text := string(s.data[:n])
	s.data = s.data[n:]
	return text
}

// value is of any type that amqp091-go decodes.
func (s *source) value(depth int) any {
	switch s.next() % 18 {
	case 1:
		return s.next() > 127
	case 2:
		return int8(s.next())
	case 3:
		return s.next()
	case 4:
		return int16(s.number())
	case 5:
		return uint16(s.number())
	case 6:
		return int32(s.number())
	case 7:
		return uint32(s.number())
	case 8, 9:
		return s.number()
	case 10:
		return math.Float32frombits(uint32(s.number()))
	case 11:
		return math.Float64frombits(uint64(s.number()))
	case 12:
		return amqp.Decimal{Scale: s.next(), Value: int32(s.number())}
	case 13:
		return time.Unix(s.number()>>24, 0)
	case 14:
		return []byte(s.text())
	case 15:
		if depth > 0 {
			return s.list(depth - 1)
		}
	case 16:
		if depth > 0 {
			return s.table(depth - 1)
		}
	case 17:
		return s.text()
	}
	return nil
}

func (s *source) list(depth int) []any {
	list := make([]any, s.next()%4)
	for i := range list {
		list[i] = s.value(depth)
	}
	return list
}

func (s *source) table(depth int) amqp.Table {
	table := amqp.Table{}
	for range s.next() % 24 {
		key := s.text()
		if b := int(s.next()); b < 200 {
			key = names[b%len(names)]
		}
		if len(key) <= maxShortString { // as the client that publishes checks
			table[key] = s.value(depth)
		}
	}
	return table
}

// delivery comes from the inbox.
func (s *source) delivery() *amqp.Delivery {
	d := &amqp.Delivery{
		Exchange:     []string{"orders.dlx", "orders.return", "orders.failed", ""}[s.next()%4],
		RoutingKey:   s.text(),
		UserId:       s.text(),
		DeliveryMode: s.next(),
		Headers:      s.table(3),
	}
	d.RoutingKey, d.UserId = d.RoutingKey[:min(len(d.RoutingKey), maxShortString)], d.UserId[:min(len(d.UserId), maxShortString)]
	return d
}
