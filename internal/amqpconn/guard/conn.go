package guard

import (
	"bytes"
	endian "encoding/binary"
	"io"
	"net"
	"sync/atomic"
)

// Parts of a frame, in bytes.
const (
	headSize = 7 // type, channel, payload size
	endSize  = 1
)

// frameHeader is the type of a frame with a content header.
const frameHeader = 2

// Conn replaces the headers of messages that the client could not decode by [HeaderUndecodable].
// Everything else goes through as it is, and what the caller's buffer has whole, in place.
type Conn struct {
	net.Conn
	frameMax atomic.Uint32

	// through is what is left of a frame that need not be looked at.
	through int64
	// unread was received, and begins with a frame.
	unread []byte
	// ready goes to the client next.
	ready []byte
}

// New guards a connection; with TLS, the decrypted one.
func New(conn net.Conn) *Conn { return &Conn{Conn: conn} }

// SetFrameMax tells the limit that client and broker have agreed on, 0 for none.
func (c *Conn) SetFrameMax(n uint32) { c.frameMax.Store(n) }

// Read is called by one goroutine at a time.
func (c *Conn) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		if len(c.unread) > 0 {
			if err := c.advance(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := c.Conn.Read(p)
		whole := c.scan(p[:n])
		c.unread = bytes.Clone(p[whole:n])
		if whole > 0 || n == 0 || err != nil {
			return whole, err
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// scan tells how much of the data goes through as it is: up to the first frame that is incomplete
// and has to be looked at, or that the client could not decode.
func (c *Conn) scan(data []byte) (at int) {
	for {
		n := min(c.through, int64(len(data)-at))
		c.through -= n
		at += int(n)
		frame := data[at:]
		if len(frame) < headSize {
			return at
		}
		size := payloadSize(frame)
		if !isContentHeader(frame) {
			c.through = headSize + size + endSize
			continue
		}
		if c.tooLarge(size) || int64(len(frame)) < headSize+size+endSize || check(frame[headSize:headSize+size]) != nil {
			return at
		}
		at += headSize + int(size) + endSize
	}
}

// advance makes something of what is unread ready.
func (c *Conn) advance() error {
	if n := c.scan(c.unread); n > 0 {
		c.ready, c.unread = c.unread[:n], c.unread[n:]
		return nil
	}
	head, err := c.take(headSize)
	if err != nil {
		return err
	}
	size := payloadSize(head)
	switch {
	case !isContentHeader(head):
		c.ready, c.through = head, size+endSize
		return nil
	case c.tooLarge(size):
		c.ready, err = c.abridge(head, size)
		return err
	}
	rest, err := c.take(size + endSize)
	if err != nil {
		return err
	}
	c.ready = frame(head, rest[:size], rest[size:])
	if reason := check(rest[:size]); reason != nil {
		c.ready = frame(head, replace(rest[:size], reason), rest[size:])
	}
	return nil
}

// take reads exactly so much. An error ends the connection, so what was read before does not matter.
func (c *Conn) take(n int64) ([]byte, error) {
	data := make([]byte, n)
	_, err := io.ReadFull(received{c}, data)
	return data, err
}

// received reads what is unread and then what comes.
type received struct{ *Conn }

func (r received) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		return r.Conn.Conn.Read(p)
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

func (c *Conn) tooLarge(size int64) bool {
	frameMax := int64(c.frameMax.Load())
	return frameMax > 0 && size > frameMax-headSize-endSize
}

// isContentHeader is false for one that is shorter than any: a broker that sends it is beyond help.
func isContentHeader(head []byte) bool {
	return head[0] == frameHeader && payloadSize(head) >= fixedSize
}

func payloadSize(head []byte) int64 { return int64(endian.BigEndian.Uint32(head[3:])) }

// frame puts a payload between the beginning and the end of the frame that it came in.
func frame(head, payload, end []byte) []byte {
	f := append(bytes.Clone(head), payload...)
	endian.BigEndian.PutUint32(f[3:], uint32(len(payload))) //nolint:gosec // at most what it was
	return append(f, end...)
}
