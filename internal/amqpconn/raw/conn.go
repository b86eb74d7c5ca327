// Package raw is a network connection below an AMQP 0-9-1 client. It hands over the properties of messages in their
// wire encoding, and publishes them unchanged.
//
// The client turns headers into Go values and back. A value that Go cannot express changes on the way or ends the
// connection. So the client sees only one property of a message: a header whose value is the encoded original. If a
// published message has such a header, only its value is published.
package raw

import (
	"bytes"
	endian "encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/backpressure"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

// greetingSize is the size, in bytes, of the protocol header that a client sends before all frames.
const greetingSize = 8

// Conn is a network connection. Like the connection below a client, it is read by one goroutine and written by one at a
// time.
type Conn struct {
	net.Conn
	frameMax atomic.Uint32

	ready []byte
	// through is how many bytes of the current frame go to the client unchanged.
	through int64

	// sending is memory for the next write. unsent is the beginning of a frame that the client has not written
	// completely.
	sending, unsent []byte
	// out is how many bytes of the current frame go to the broker unchanged.
	out int64

	// Gate bounds the bytes of properties and bodies that are read and not released.
	backpressure.Gate

	// large has the properties that do not fit a frame, by their number.
	large sync.Map
	last  uint32
}

// New puts a connection below a client. With TLS, this is the decrypted connection.
func New(conn net.Conn) *Conn {
	return &Conn{Conn: conn, out: greetingSize}
}

// Close also ends a wait for room.
func (c *Conn) Close() error {
	c.End()
	return c.Conn.Close()
}

// SetFrameMax sets the limit that client and broker have agreed on, in bytes. 0 means no limit.
func (c *Conn) SetFrameMax(n uint32) { c.frameMax.Store(n) }

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

// Read hands over the received frames with wrapped properties.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.ready) == 0 && c.through == 0 {
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	if len(c.ready) > 0 {
		n := copy(p, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.through)])
	c.through -= int64(n)
	return n, err
}

// receive reads the head of a frame. It reads a content header frame completely.
func (c *Conn) receive() error {
	head := make([]byte, frame.HeadSize)
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size := frame.PayloadSize(head)
	if !frame.IsContentHeader(head, frame.ContentSize) {
		c.ready, c.through = head, size+frame.EndSize
		return nil
	}
	// The buffer grows with the received bytes, and not with the size that the head promises.
	var payload bytes.Buffer
	if _, err := io.CopyN(&payload, c.Conn, size+frame.EndSize); err != nil {
		return err
	}
	content, properties := payload.Bytes()[:frame.ContentSize], payload.Bytes()[frame.ContentSize:size]
	if c.Admit(len(properties) + frame.BodySize(content)) {
		// The client's deadline was for a silent broker. The client sets a new one with the next frame.
		_ = c.SetReadDeadline(time.Time{})
	}
	c.ready = frame.Join(head, payload.Bytes()[size:], content, c.wrapped(properties))
	return nil
}

// wrapped returns properties that stand for these. It keeps properties aside that do not fit a frame of the client.
func (c *Conn) wrapped(properties []byte) []byte {
	frameMax := int(c.frameMax.Load())
	if frameMax == 0 || frame.HeadSize+frame.ContentSize+wrapSize+len(properties)+frame.EndSize <= frameMax {
		return wrap(properties)
	}
	c.last++
	c.large.Store(c.last, bytes.Clone(properties))
	return endian.BigEndian.AppendUint32(opening(4, 'i'), c.last)
}

// Write sends frames with unwrapped properties.
func (c *Conn) Write(p []byte) (int, error) {
	send := c.sending[:0]
	for rest := p; len(rest) > 0; {
		if c.out > 0 {
			n := min(int64(len(rest)), c.out)
			send, rest, c.out = append(send, rest[:n]...), rest[n:], c.out-n
			continue
		}
		n := min(len(rest), c.missing())
		c.unsent, rest = append(c.unsent, rest[:n]...), rest[n:]
		if c.missing() == 0 {
			send = append(send, c.begin()...)
		}
	}
	c.sending = send
	if len(send) == 0 {
		return len(p), nil
	}
	if _, err := c.Conn.Write(send); err != nil {
		return 0, err
	}
	return len(p), nil
}

// missing is how many more bytes must be written before the next part can be sent. That part is the head of a frame, or
// a whole frame with a content header.
func (c *Conn) missing() int {
	if len(c.unsent) < frame.HeadSize {
		return frame.HeadSize - len(c.unsent)
	}
	if !frame.IsContentHeader(c.unsent, frame.ContentSize) {
		return 0
	}
	return frame.HeadSize + int(frame.PayloadSize(c.unsent)) + frame.EndSize - len(c.unsent)
}

// begin takes the part that can be sent.
func (c *Conn) begin() []byte {
	unsent := c.unsent
	c.unsent = nil
	if !frame.IsContentHeader(unsent, frame.ContentSize) {
		c.out = frame.PayloadSize(unsent) + frame.EndSize
		return unsent
	}
	head, payload, end := unsent[:frame.HeadSize], unsent[frame.HeadSize:len(unsent)-frame.EndSize], unsent[len(unsent)-frame.EndSize:]
	return frame.Join(head, end, payload[:frame.ContentSize], unwrap(payload[frame.ContentSize:]))
}

// wrapper is the only header that the client sees. It exists only between this package and the client.
const wrapper = "raw"

// flagHeaders is the flag of the property headers.
const flagHeaders = 0x2000

// wrapSize is the size, in bytes, that wrapping adds: flags, size of the table, name, type and size of the value.
const wrapSize = 2 + 4 + 1 + len(wrapper) + 1 + 4

// Headers returns the headers for publishing a message with exactly these encoded properties.
func Headers(properties []byte) amqp.Table { return amqp.Table{wrapper: properties} }

func wrap(properties []byte) []byte {
	w := opening(len(properties)+4, 'x')
	w = endian.BigEndian.AppendUint32(w, uint32(len(properties))) //nolint:gosec // is within a frame
	return append(w, properties...)
}

// opening returns the bytes before a value of this size and type.
func opening(size int, tag byte) []byte {
	w := endian.BigEndian.AppendUint16(make([]byte, 0, wrapSize+size), flagHeaders)
	w = endian.BigEndian.AppendUint32(w, uint32(1+len(wrapper)+1+size)) //nolint:gosec // is within a frame
	w = append(append(w, byte(len(wrapper))), wrapper...)
	return append(w, tag)
}

// unwrap returns wrapped properties in their original form, and all others unchanged.
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
