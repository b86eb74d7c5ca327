// Package frame reads and builds AMQP 0-9-1 frames for the connections below a client.
package frame

import endian "encoding/binary"

// Parts of a frame, in bytes.
const (
	HeadSize = 7 // type, channel, payload size
	EndSize  = 1
	// ContentSize is the size of a content header before its properties: class, weight and body size.
	ContentSize = 2 + 2 + 8
)

// contentHeader is the type of a frame with a content header.
const contentHeader = 2

// PayloadSize reads the size of the payload, in bytes, from the head of a frame.
func PayloadSize(head []byte) int64 { return int64(endian.BigEndian.Uint32(head[3:])) }

// BodySize reads the size of the message body, in bytes, from the payload of a content header frame.
func BodySize(payload []byte) int {
	return int(endian.BigEndian.Uint64(payload[ContentSize-8:])) //nolint:gosec // a broker has limits
}

// IsContentHeader reports whether the head starts a content header frame of at least this size. Brokers send no shorter
// content headers.
func IsContentHeader(head []byte, size int64) bool {
	return head[0] == contentHeader && PayloadSize(head) >= size
}

// Join builds a frame from its head, the parts of its payload, and its end.
func Join(head, end []byte, payload ...[]byte) []byte {
	size := 0
	for _, part := range payload {
		size += len(part)
	}
	f := make([]byte, 0, len(head)+size+len(end))
	f = append(f, head...)
	endian.BigEndian.PutUint32(f[3:], uint32(size))
	for _, part := range payload {
		f = append(f, part...)
	}
	return append(f, end...)
}
