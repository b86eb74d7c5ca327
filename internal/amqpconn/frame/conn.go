// Package frame is the connection below an AMQP 0-9-1 client. It changes the content headers that the client reads and
// writes.
//
// amqp091-go closes the whole connection over certain content headers. These nest too deep, hold too many entries, have
// a value of an unknown type, or are larger than the negotiated frame_max. Brokers accept the first three from any
// publisher. They make the last themselves, when they add x-death to headers of the largest size. One such message
// would stop everything behind it. So [Guarded] replaces such headers.
//
// The client also turns headers into Go values and back. A value that Go cannot express changes on the way. So [Raw]
// hides all properties from the client.
package frame

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readAtFirst is the size of the first read buffer, so that a mostly idle connection costs no more. If that is too
	// little, the size becomes readAtMost.
	readAtFirst = 4 << 10
	readAtMost  = 64 << 10
)

// Conn is a network connection. Like the connection below a client, it is read by one goroutine and written by one at a
// time.
type Conn struct {
	net.Conn
	// Gate bounds the bytes of bodies. If the connection is raw, it bounds the bytes of properties, too.
	Gate
	frameMax atomic.Uint32

	in stream
	// unread was received into buffer, and is not taken by in. ready goes to the client next.
	buffer, unread, ready []byte

	// out is nil if writes pass unchanged. sending is memory for the next write.
	out     *stream
	sending []byte

	// large has the properties that do not fit a frame, by their number.
	large sync.Map
	last  uint32
}

// Guarded puts a connection below a client. With TLS, this is the decrypted connection. It replaces the headers of
// messages that the client could not decode by [HeaderUndecodable].
func Guarded(conn net.Conn) *Conn {
	c := newConn(conn)
	c.in.edit = func(properties []byte, body int) []byte {
		c.await(body)
		return c.decodable(properties)
	}
	return c
}

// Raw puts a connection below a client. With TLS, this is the decrypted connection. In place of a message's properties,
// the client sees one header. [Conn.Properties] returns the encoded properties for it. To publish, use [Headers].
func Raw(conn net.Conn) *Conn {
	c := newConn(conn)
	c.in.edit = func(properties []byte, body int) []byte {
		c.await(len(properties) + body)
		return c.wrap(properties)
	}
	c.out = &stream{through: greetingSize, edit: unwrap}
	return c
}

func newConn(conn net.Conn) *Conn {
	return &Conn{Conn: conn, Gate: Gate{changed: make(chan struct{}, 1)}, buffer: make([]byte, readAtFirst)}
}

// SetFrameMax sets the limit that client and broker have agreed on, in bytes. 0 means no limit.
func (c *Conn) SetFrameMax(n uint32) { c.frameMax.Store(n) }

// Close also ends a wait for room.
func (c *Conn) Close() error {
	c.end()
	return c.Conn.Close()
}

// Read returns the bytes that are there, as any connection does. It waits for the rest of a content header, and for
// room.
func (c *Conn) Read(p []byte) (n int, err error) {
	for {
		if len(c.ready) == 0 {
			if err := c.receive(); err != nil {
				return 0, err
			}
		}
		copied := copy(p[n:], c.ready)
		c.ready, n = c.ready[copied:], n+copied
		if n == len(p) || n > 0 && (len(c.unread) == 0 || c.Full()) {
			return n, nil
		}
	}
}

// receive makes the next bytes ready, if the received ones are enough.
func (c *Conn) receive() error {
	if len(c.unread) == 0 {
		n, err := c.Conn.Read(c.buffer)
		switch {
		case n == 0 && errors.Is(err, io.EOF) && len(c.in.held) > 0:
			return io.ErrUnexpectedEOF
		case n == 0 && err != nil:
			return err
		}
		c.unread = c.buffer[:n]
		if n == len(c.buffer) && n < readAtMost {
			c.buffer = make([]byte, readAtMost)
		}
	}
	c.ready, c.unread = c.in.next(c.unread)
	return nil
}

// await waits until there is room for a message.
func (c *Conn) await(bytes int) {
	if c.admit(bytes) {
		// The client's deadline was for a silent broker. The client sets a new one with the next frame.
		_ = c.SetReadDeadline(time.Time{})
	}
}

// Write sends the frames whose content headers are complete.
func (c *Conn) Write(p []byte) (int, error) {
	if c.out == nil {
		return c.Conn.Write(p)
	}
	c.sending = c.sending[:0]
	for rest := p; len(rest) > 0; {
		var send []byte
		send, rest = c.out.next(rest)
		c.sending = append(c.sending, send...)
	}
	if _, err := c.Conn.Write(c.sending); err != nil {
		return 0, err
	}
	return len(p), nil
}

// tooLarge reports whether these properties do not fit a frame.
func (c *Conn) tooLarge(properties []byte) bool {
	frameMax := int(c.frameMax.Load())
	return frameMax > 0 && contentSize+len(properties)+endSize > frameMax
}
