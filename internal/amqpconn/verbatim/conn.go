// Package verbatim is a network connection below an AMQP 1.0 client. It hands over messages in their wire encoding.
//
// The client decodes the messages that it receives. It detaches from the queue over types that it does not know, which
// brokers pass on. So each message reaches the client as an opaque body: the message's data are the bytes of all
// sections of the original.
package verbatim

import (
	"bytes"
	endian "encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
)

const (
	// headSize is the size, in bytes, of a frame's header, and of the protocol headers before all frames.
	headSize = 8
	// maxFrame is more than any broker sends to a client that asks for 64 KiB.
	maxFrame = 1 << 20
)

// Types of frames and performatives.
const (
	frameAMQP = 0
	transfer  = 0x14
)

var (
	errFrame    = errors.New("a frame is malformed")
	errTransfer = errors.New("a transfer frame is malformed")
)

// Conn is a network connection whose messages arrive undecoded. Writes pass unchanged.
type Conn struct {
	net.Conn
	// pending was received, and is not read yet.
	pending []byte
}

// New puts a connection below a client.
func New(conn net.Conn) *Conn { return &Conn{Conn: conn} }

// Read reads from the broker. It puts each message into the data of a new message.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 {
		var err error
		if c.pending, err = c.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

func (c *Conn) receive() ([]byte, error) {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte("AMQP")) {
		return head, nil
	}
	size := endian.BigEndian.Uint32(head)
	if size < headSize || size > maxFrame {
		return nil, errFrame
	}
	frame := slices.Grow(head, int(size))[:size]
	if _, err := io.ReadFull(c.Conn, frame[headSize:]); err != nil {
		return nil, err
	}
	return wrap(frame)
}

// wrap turns the payload of a transfer into a data section. A message in several frames becomes several data sections.
func wrap(frame []byte) ([]byte, error) {
	const words = 4 // bytes per word, the unit of the body's offset
	offset, kind := int(frame[4])*words, frame[5]
	if offset < headSize || offset > len(frame) {
		return nil, errFrame
	}
	if kind != frameAMQP || !bytes.HasPrefix(frame[offset:], []byte{0x00, 0x53, transfer}) {
		return frame, nil
	}
	payload, err := afterList(frame[offset+3:])
	if err != nil || len(payload) == 0 {
		return frame, err
	}
	wrapped := append(bytes.Clone(frame[:len(frame)-len(payload)]), 0x00, 0x53, 0x75, 0xb0)
	wrapped = endian.BigEndian.AppendUint32(wrapped, uint32(len(payload))) //nolint:gosec // is within a frame
	wrapped = append(wrapped, payload...)
	endian.BigEndian.PutUint32(wrapped, uint32(len(wrapped))) //nolint:gosec // as above
	return wrapped, nil
}

// afterList skips an encoded list.
func afterList(data []byte) ([]byte, error) {
	var size, length int
	switch {
	case len(data) >= 1 && data[0] == 0x45:
		size, length = 0, 0
	case len(data) >= 2 && data[0] == 0xc0:
		size, length = int(data[1]), 1
	case len(data) >= 5 && data[0] == 0xd0:
		size, length = int(endian.BigEndian.Uint32(data[1:])), 4
	default:
		return nil, errTransfer
	}
	if size > len(data)-1-length {
		return nil, errTransfer
	}
	return data[1+length+size:], nil
}
