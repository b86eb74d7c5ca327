package guard

import (
	"bytes"
	endian "encoding/binary"
	"errors"
	"io"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// HeaderUndecodable is the only header of a message whose own headers the client could not decode. Its value says why.
// It exists only between the guard and the client. A published message that looks the same is treated the same.
const HeaderUndecodable = "retry-undecodable"

// maxHeaders is the largest size, in bytes, at which oversized headers are still read.
const maxHeaders = 1 << 20

// maxTail is more bytes than the properties after the headers can take.
const maxTail = 4 << 10

// Undecodable says why the headers of a delivery could not be decoded. It returns nil if they were decoded.
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
	return errForged // keeps a publisher's text out of the log
}

// replace builds a content header with headers that the client can decode. It keeps all properties that make sense.
func replace(payload []byte, reason error) []byte {
	var properties content.Properties
	_, _ = properties.Read(payload[frame.ContentSize:]) // the error says that the rest makes no sense
	headers := properties.Headers()
	table := content.Table{}.With(HeaderUndecodable, content.Text(reason.Error()))
	if errors.Is(reason, errUnreadable) {
		table = headers.Keep(func(name []byte) bool { return string(name) != headerDeath })
	}
	if isUnreadable(headers) {
		table = table.With(headerDeath, unreadable)
	}
	properties.SetHeaders(table)
	return slices.Concat(payload[:frame.ContentSize], properties.Encode())
}

func appendLength(data []byte, n int) []byte {
	return endian.BigEndian.AppendUint32(data, uint32(n)) //nolint:gosec // of our own texts
}

// abridge reads a frame that is larger than allowed.
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

// abridged reads a content header. It gives headers that are too large an unreadable x-death.
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

// unreadable replaces an x-death that the broker could not read.
var unreadable = content.List(content.Value{Type: content.TypeVoid})

// HasUnreadableDeath reports whether RabbitMQ before 3.13 would fail to dead-letter a delivery.
func HasUnreadableDeath(h amqp.Table) bool {
	deaths, _ := h[headerDeath].([]any)
	return len(deaths) == 1 && deaths[0] == nil
}

// isUnreadable reports whether RabbitMQ before 3.13 fails on the x-death when it dead-letters the message. It fails on
// an element that is no table, and on a count that is no integer. When it publishes the message again, it fails on
// routing keys that are no list. It reads only the first x-death, and replaces one that is no list.
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
