// Package guard keeps an AMQP client alive when messages arrive that it cannot decode.
//
// amqp091-go closes the whole connection over certain content headers. These nest too deep, hold too many entries, have
// a value of an unknown type, or are larger than the negotiated frame_max. Brokers accept the first three from any
// publisher. They make the last themselves, when they add x-death to headers of the largest size. One such message
// would stop everything behind it.
package guard

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/backpressure"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// Conn replaces the headers of messages that the client could not decode by [HeaderUndecodable]. Everything else passes
// unchanged. Frames that the caller's buffer holds whole stay in place.
type Conn struct {
	net.Conn
	frameMax atomic.Uint32
	// Gate bounds the bytes of bodies.
	backpressure.Gate

	// through is how many bytes of the current frame need no check.
	through int64
	// unread was received, and begins with a frame.
	unread []byte
	// ready goes to the client next.
	ready []byte
}

// New guards a connection. With TLS, this is the decrypted connection.
func New(conn net.Conn) *Conn { return &Conn{Conn: conn} }

// SetFrameMax sets the limit that client and broker have agreed on, in bytes. 0 means no limit.
func (c *Conn) SetFrameMax(n uint32) { c.frameMax.Store(n) }

// Close also ends a wait for room.
func (c *Conn) Close() error {
	c.End()
	return c.Conn.Close()
}

// Read must be called by one goroutine at a time.
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

// scan returns how many bytes of the data pass unchanged. It stops at the first frame that is incomplete and needs a
// check, that the client could not decode, or whose body has no room.
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

// advance makes a part of unread ready.
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
		// The client's deadline was for a silent broker. The client sets a new one with the next frame.
		_ = c.SetReadDeadline(time.Time{})
	}
	return nil
}

// contentHeader reads the rest of a frame, and returns a frame that the client can decode.
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

// take reads exactly this many bytes. An error ends the connection, so the bytes read before it do not matter.
func (c *Conn) take(n int64) ([]byte, error) {
	data := make([]byte, n)
	_, err := io.ReadFull(received{c}, data)
	return data, err
}

// received reads the unread bytes first, and then from the connection.
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

// Parts of a content header, in bytes.
const (
	flagsSize  = 2
	fixedSize  = frame.ContentSize + flagsSize
	lengthSize = 4
)

// Limits of amqp091-go v1.16, which does not export them.
const (
	// maxDepth is how deep tables and arrays can nest, the headers themselves not counted.
	maxDepth = 32
	// maxEntries is how many entries a table or an array can have. The library counts a repeated key once, but no
	// broker repeats a key.
	maxEntries = 8192
)

// limits are the library's limits. They also exclude the type 'L', which brokers read and the library does not.
var limits = content.Limits{Depth: maxDepth, Entries: maxEntries, NoLongLong: true}

// errUnreadable says that the client can decode a message, but the broker could not read its x-death.
var errUnreadable = errors.New("x-death is not a list that the broker can read")

// Why the client cannot decode a message.
var (
	errTooLarge    = errors.New("the headers are larger than the connection's frame_max")
	errTooDeep     = errors.New("the headers nest deeper than 32 levels")
	errTooMany     = errors.New("the headers have a table or list of more than 8192 entries")
	errUnknownType = errors.New("the headers have a value of an unknown type")
	errMalformed   = errors.New("the properties are malformed")
	errForged      = errors.New("the publisher set the header " + HeaderUndecodable)
)

// check returns an error if the client could not decode a content header, or if its x-death is unreadable. It is
// stricter than the client about lengths that do not add up, which no broker sends.
func check(payload []byte) error {
	var properties content.Properties
	_, cutOff := properties.Read(payload[frame.ContentSize:])
	headers := properties.Headers()
	err := content.CheckTable(headers, limits)
	switch {
	case errors.Is(err, content.ErrTooDeep):
		return errTooDeep
	case errors.Is(err, content.ErrTooMany):
		return errTooMany
	case errors.Is(err, content.ErrUnknownType):
		return errUnknownType
	case err == nil && isUnreadable(headers):
		return errUnreadable
	case err != nil || cutOff != nil:
		return errMalformed
	}
	return nil
}
