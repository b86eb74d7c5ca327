package frame

import (
	"bytes"
	endian "encoding/binary"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// wrapper is the only header that the client sees. It exists only between this package and the client.
const wrapper = "raw"

// Headers returns the headers for publishing a message with exactly these encoded properties.
func Headers(properties []byte) amqp.Table { return amqp.Table{wrapper: properties} }

// Properties returns the encoded properties, flags and values, of a delivery or a return with these headers. It must be
// called only once for each.
func (c *Conn) Properties(h amqp.Table) []byte {
	switch value := h[wrapper].(type) {
	case []byte:
		return value
	case uint32:
		if kept, ok := c.large.LoadAndDelete(value); ok {
			return kept.([]byte) //nolint:forcetypeassert // nothing else is stored
		}
	}
	return []byte{0, 0}
}

// wrap returns properties that stand for these. It keeps properties aside that do not fit a frame of the client.
func (c *Conn) wrap(properties []byte) []byte {
	wrapped := header(content.Value{Type: content.TypeBinary, Bytes: properties})
	if !c.tooLarge(wrapped) {
		return wrapped
	}
	c.last++
	c.large.Store(c.last, bytes.Clone(properties))
	return header(content.Value{Type: content.TypeUint32, Bytes: endian.BigEndian.AppendUint32(nil, c.last)})
}

// header returns properties with only the wrapper.
func header(value content.Value) []byte {
	var p content.Properties
	p.SetHeaders(content.Table{}.With(wrapper, value))
	return p.Encode()
}

// unwrap returns wrapped properties in their original form. It returns nil if they are not wrapped.
func unwrap(properties []byte, _ int) []byte {
	var p content.Properties
	_, _ = p.Read(properties)
	if value, _ := p.Headers().Get(wrapper); value.Type == content.TypeBinary {
		return value.Bytes
	}
	return nil
}
