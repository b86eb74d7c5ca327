// Package frame has what connections below an AMQP 0-9-1 client need to know of its frames.
package frame

import endian "encoding/binary"

// Parts of a frame, in bytes.
const (
	HeadSize = 7 // type, channel, payload size
	EndSize  = 1
	// ContentSize is what a content header has before its properties: class, weight and body size.
	ContentSize = 2 + 2 + 8
)

// contentHeader is the type of a frame with one.
const contentHeader = 2

// PayloadSize is what the head of a frame says.
func PayloadSize(head []byte) int64 { return int64(endian.BigEndian.Uint32(head[3:])) }

// BodySize is the size of the body that follows a content header, the payload of a frame.
func BodySize(payload []byte) int {
	return int(endian.BigEndian.Uint64(payload[ContentSize-8:])) //nolint:gosec // a broker has limits
}

// IsContentHeader reports whether the head is that of a frame with a content header of at least this size. A broker
// that sends a shorter one is beyond help.
func IsContentHeader(head []byte, size int64) bool {
	return head[0] == contentHeader && PayloadSize(head) >= size
}

// Join puts the parts of a payload between the head and the end of the frame that they came in.
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
