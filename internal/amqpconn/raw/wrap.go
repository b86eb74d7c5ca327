package raw

import (
	"bytes"
	endian "encoding/binary"

	amqp "github.com/rabbitmq/amqp091-go"
)

// wrapper is the only header that the client sees. It exists between this package and the client alone.
const wrapper = "raw"

// flagHeaders is the flag of the property that the client sees.
const flagHeaders = 0x2000

// wrapSize is what wrapping adds: flags, size of the table, name, type and size of the value.
const wrapSize = 2 + 4 + 1 + len(wrapper) + 1 + 4

// Headers are those to publish a message with, for it to have these encoded properties, and no others.
func Headers(properties []byte) amqp.Table { return amqp.Table{wrapper: properties} }

func wrap(properties []byte) []byte {
	w := opening(len(properties)+4, 'x')
	w = endian.BigEndian.AppendUint32(w, uint32(len(properties))) //nolint:gosec // is within a frame
	return append(w, properties...)
}

func wrapNumber(n uint32) []byte {
	return endian.BigEndian.AppendUint32(opening(4, 'i'), n)
}

// opening is what goes before a value of this size and type.
func opening(size int, tag byte) []byte {
	w := endian.BigEndian.AppendUint16(make([]byte, 0, wrapSize+size), flagHeaders)
	w = endian.BigEndian.AppendUint32(w, uint32(1+len(wrapper)+1+size)) //nolint:gosec // is within a frame
	w = append(append(w, byte(len(wrapper))), wrapper...)
	return append(w, tag)
}

// unwrap returns what was wrapped, and anything else as it is.
func unwrap(properties []byte) []byte {
	if len(properties) < wrapSize {
		return properties
	}
	content := properties[wrapSize:]
	if !bytes.Equal(properties[:wrapSize], wrap(content)[:wrapSize]) {
		return properties
	}
	return content
}
