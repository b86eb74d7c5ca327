package guard

import (
	"bytes"
	endian "encoding/binary"
	"errors"
	"io"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// HeaderUndecodable is the only header of a message whose own the client could not decode. Its value
// says why. It exists between the guard and the client alone: who publishes a message that looks the
// same has it treated the same.
const HeaderUndecodable = "retry-undecodable"

// maxHeaders is how large headers may be to be read if they are larger than a frame may be.
const maxHeaders = 1 << 20

// maxTail is more than the properties that follow the headers can take.
const maxTail = 4 << 10

// Undecodable says why the headers of a delivery could not be decoded; it is nil if they were.
func Undecodable(h amqp.Table) error {
	text, ok := h[HeaderUndecodable].(string)
	if !ok || len(h) > 2 || len(h) == 2 && !HasUnreadableDeath(h) {
		return nil
	}
	for _, reason := range []error{errTooLarge, errTooDeep, errTooMany, errUnknownType, errMalformed} {
		if text == reason.Error() {
			return reason
		}
	}
	return errForged // and no text of a publisher's in the log
}

// replace builds a content header with the same properties, as far as they make sense, and headers that the client can
// decode.
func replace(payload []byte, reason error) []byte {
	var before, after []byte
	var headers content.Table
	flags := content.Headers.Flag()
	// The error says that the rest makes no sense, and is left out.
	_ = content.Each(payload[frame.ContentSize:], func(p content.Property, value []byte) error {
		flags |= p.Flag()
		switch {
		case p < content.Headers:
			before = append(before, value...)
		case p > content.Headers:
			after = append(after, value...)
		default:
			headers = value[lengthSize:]
		}
		return nil
	})
	head := endian.BigEndian.AppendUint16(bytes.Clone(payload[:frame.ContentSize]), flags)
	return bytes.Join([][]byte{head, before, decodable(headers, reason), after}, nil)
}

// decodable is the encoded table that takes the place of headers.
func decodable(headers content.Table, reason error) []byte {
	table := content.Table{}.With(HeaderUndecodable, content.Text(reason.Error()))
	if errors.Is(reason, errUnreadable) {
		table = headers.Keep(func(name []byte) bool { return string(name) != headerDeath })
	}
	if isUnreadable(headers) {
		table = table.With(headerDeath, unreadable)
	}
	return append(appendLength(nil, len(table)), table...)
}

func appendLength(data []byte, n int) []byte {
	return endian.BigEndian.AppendUint32(data, uint32(n)) //nolint:gosec // of our own texts
}

// abridge reads a frame that is larger than it may be.
func (c *Conn) abridge(head []byte, size int64) ([]byte, error) {
	payload := &io.LimitedReader{R: received{c}, N: size}
	kept, err := abridged(payload)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, payload); err != nil {
		return nil, err
	}
	end, err := c.take(frame.EndSize)
	return frame.Join(head, end, replace(kept, errTooLarge)), err
}

// abridged reads a content header. Headers that are too large count as having an x-death that is unreadable.
func abridged(payload *io.LimitedReader) ([]byte, error) {
	kept, err := appendFrom(nil, payload, fixedSize)
	if err != nil {
		return nil, err
	}
	flags := endian.BigEndian.Uint16(kept[frame.ContentSize:])
	for p := range content.Headers {
		if flags&p.Flag() == 0 {
			continue
		}
		if kept, err = appendFrom(kept, payload, 1); err != nil {
			return nil, err
		}
		if kept, err = appendFrom(kept, payload, int64(kept[len(kept)-1])); err != nil {
			return nil, err
		}
	}
	if flags&content.Headers.Flag() != 0 {
		length, err := appendFrom(nil, payload, lengthSize)
		if err != nil {
			return nil, err
		}
		size := min(int64(endian.BigEndian.Uint32(length)), payload.N)
		table := content.Table{}.With(headerDeath, unreadable)
		if size <= maxHeaders {
			table, err = appendFrom(nil, payload, size)
		} else {
			_, err = io.CopyN(io.Discard, payload, size)
		}
		if err != nil {
			return nil, err
		}
		kept = append(appendLength(kept, len(table)), table...)
	}
	return appendFrom(kept, payload, min(maxTail, payload.N))
}

func appendFrom(data []byte, from io.Reader, n int64) ([]byte, error) {
	more := make([]byte, n)
	_, err := io.ReadFull(from, more)
	return append(data, more...), err
}

const headerDeath = "x-death"

// unreadable takes the place of an x-death that the broker could not read.
var unreadable = content.List(content.Value{Type: content.TypeVoid})

// HasUnreadableDeath reports whether RabbitMQ before 3.13 would fail to dead-letter a delivery.
func HasUnreadableDeath(h amqp.Table) bool {
	deaths, _ := h[headerDeath].([]any)
	return len(deaths) == 1 && deaths[0] == nil
}

// isUnreadable reports whether RabbitMQ before 3.13 fails over the x-death when it dead-letters the message: over an
// element that is no table, a count that is no integer, and, when it publishes again, routing keys that are no list. It
// reads the first x-death, and replaces one that is no list.
func isUnreadable(headers content.Table) bool {
	if !bytes.Contains(headers, []byte(headerDeath)) {
		return false
	}
	value, _ := headers.Get(headerDeath)
	deaths, isList := value.Array()
	if !isList {
		return false
	}
	for element := range deaths.All() {
		death, isTable := element.Table()
		count, counted := death.Get("count")
		_, isInteger := count.Integer()
		keys, _ := death.Get("routing-keys")
		if _, areListed := keys.Array(); !isTable || counted && !isInteger || !areListed {
			return true
		}
	}
	return false
}
