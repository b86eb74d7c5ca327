package guard

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/intake"
)

// Conn replaces the headers of messages that the client could not decode by [HeaderUndecodable].
// Everything else goes through as it is, and what the caller's buffer has whole, in place.
type Conn struct {
	net.Conn
	frameMax atomic.Uint32
	// Intake bounds the bytes of bodies.
	intake.Intake

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

// Close also ends a wait for room.
func (c *Conn) Close() error {
	c.End()
	return c.Conn.Close()
}

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
// and has to be looked at, or that the client could not decode, or for whose body there is no room.
func (c *Conn) scan(data []byte) (at int) {
	for {
		n := min(c.through, int64(len(data)-at))
		c.through -= n
		at += int(n)
		rest := data[at:]
		if len(rest) < frame.HeadSize {
			return at
		}
		size := frame.PayloadSize(rest)
		whole := frame.HeadSize + size + frame.EndSize
		if !frame.IsContentHeader(rest, fixedSize) {
			c.through = whole
			continue
		}
		if c.tooLarge(size) || int64(len(rest)) < whole || c.Full() || check(rest[frame.HeadSize:frame.HeadSize+size]) != nil {
			return at
		}
		c.Admit(frame.BodySize(rest[frame.HeadSize:]))
		at += int(whole)
	}
}

// advance makes something of what is unread ready.
func (c *Conn) advance() error {
	if n := c.scan(c.unread); n > 0 {
		c.ready, c.unread = c.unread[:n], c.unread[n:]
		return nil
	}
	head, err := c.take(frame.HeadSize)
	if err != nil {
		return err
	}
	if size := frame.PayloadSize(head); !frame.IsContentHeader(head, fixedSize) {
		c.ready, c.through = head, size+frame.EndSize
		return nil
	}
	if c.ready, err = c.contentHeader(head); err != nil {
		return err
	}
	if c.Admit(frame.BodySize(c.ready[frame.HeadSize:])) {
		// The client's deadline was for a broker that says nothing. It sets a new one with the next frame.
		_ = c.SetReadDeadline(time.Time{})
	}
	return nil
}

// contentHeader reads the rest of a frame, and makes it one that the client can decode.
func (c *Conn) contentHeader(head []byte) ([]byte, error) {
	size := frame.PayloadSize(head)
	if c.tooLarge(size) {
		return c.abridge(head, size)
	}
	rest, err := c.take(size + frame.EndSize)
	if err != nil {
		return nil, err
	}
	payload, end := rest[:size], rest[size:]
	if reason := check(payload); reason != nil {
		payload = replace(payload, reason)
	}
	return frame.Join(head, end, payload), nil
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
	return frameMax > 0 && size > frameMax-frame.HeadSize-frame.EndSize
}
