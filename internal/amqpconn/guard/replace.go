package guard

import (
	"bytes"
	endian "encoding/binary"
	"io"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// HeaderUndecodable is the only header of a message whose own the client could not decode. Its value
// says why. It exists between the guard and the client alone: who publishes a message that looks the
// same has it treated the same.
const HeaderUndecodable = "retry-undecodable"

// maxTail is more than the properties that follow the headers can take.
const maxTail = 4 << 10

// Undecodable says why the headers of a delivery could not be decoded; it is nil if they were.
func Undecodable(h amqp.Table) error {
	text, ok := h[HeaderUndecodable].(string)
	if !ok || len(h) != 1 {
		return nil
	}
	for _, reason := range []error{errTooLarge, errTooDeep, errTooMany, errUnknownType, errMalformed} {
		if text == reason.Error() {
			return reason
		}
	}
	return errForged // and no text of a publisher's in the log
}

// replace builds a content header with the same properties, as far as they make sense, and
// [HeaderUndecodable] for headers.
func replace(payload []byte, reason error) []byte {
	var before, after []byte
	flags := content.Headers.Flag()
	// The error says that the rest makes no sense, and is left out.
	_ = content.Each(payload[frame.ContentSize:], func(p content.Property, value []byte) error {
		flags |= p.Flag()
		switch {
		case p < content.Headers:
			before = append(before, value...)
		case p > content.Headers:
			after = append(after, value...)
		}
		return nil
	})
	head := endian.BigEndian.AppendUint16(bytes.Clone(payload[:frame.ContentSize]), flags)
	return bytes.Join([][]byte{head, before, marker(reason.Error()), after}, nil)
}

// marker is the encoded table.
func marker(reason string) []byte {
	table := content.Table{}.With(HeaderUndecodable, content.Text(reason))
	return append(appendLength(nil, len(table)), table...)
}

func appendLength(data []byte, n int) []byte {
	return endian.BigEndian.AppendUint32(data, uint32(n)) //nolint:gosec // of our own texts
}

// abridge reads a frame that is larger than it may be, without keeping its headers in memory.
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

// abridged reads a content header with the table of headers left empty.
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
		size := int64(endian.BigEndian.Uint32(length))
		if _, err := io.CopyN(io.Discard, payload, min(size, payload.N)); err != nil {
			return nil, err
		}
		kept = appendLength(kept, 0)
	}
	return appendFrom(kept, payload, min(maxTail, payload.N))
}

func appendFrom(data []byte, from io.Reader, n int64) ([]byte, error) {
	more := make([]byte, n)
	_, err := io.ReadFull(from, more)
	return append(data, more...), err
}
