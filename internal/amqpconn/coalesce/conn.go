// Package coalesce turns many small writes to a connection into few larger ones.
//
// An AMQP client makes a system call per publish and per acknowledgement, and each wakes up the broker. Together these
// cost more than handling the message. Here, a write only adds to a buffer that one goroutine sends at once, and again
// as soon as there is more. It waits neither for a timer nor for a full buffer.
package coalesce

import (
	"net"
	"sync"
	"time"
)

const (
	// atMost is how many unsent bytes can wait before a write waits, too. Writers then notice a broker that does not
	// read.
	atMost = 128 << 10
	// lastWords is how long closing waits for earlier writes to be sent.
	lastWords = time.Second
)

// Conn sends its writes from a goroutine of its own, which ends with [Conn.Close].
type Conn struct {
	net.Conn
	mu sync.Mutex
	// pending is sent next. Its memory and the memory of the current write take turns.
	pending []byte
	// err is why nothing more can be sent.
	err error
	// changed tells the sender that there is something to send, and the writers that there is room.
	changed sync.Cond

	// deadline is for all reads and writes. It is zero if no deadline is set.
	deadline time.Time

	closing bool
	// sent is closed when the sender has ended.
	sent chan struct{}
}

// New takes over a connection.
func New(conn net.Conn) *Conn {
	c := &Conn{Conn: conn, sent: make(chan struct{})}
	c.changed.L = &c.mu
	go c.send()
	return c
}

// Write fails if an earlier write has turned out to fail. As with any connection, success does not mean that the data
// arrives.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) >= atMost && c.err == nil && !c.closing {
		c.changed.Wait()
	}
	if c.closing {
		return 0, net.ErrClosed
	}
	if c.err != nil {
		return 0, c.err
	}
	c.pending = append(c.pending, p...)
	c.changed.Broadcast()
	return len(p), nil
}

// SetDeadline stays in force until its next call.
func (c *Conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline does not move a read beyond the deadline of SetDeadline. A client that closes the connection sets
// that deadline, and continues to set this one with each read.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deadline.IsZero() && (t.IsZero() || t.After(c.deadline)) {
		t = c.deadline
	}
	return c.Conn.SetReadDeadline(t)
}

// Close sends the earlier writes, unless that takes long, and closes the connection.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closing = true
	c.changed.Broadcast()
	c.mu.Unlock()
	select {
	case <-c.sent:
	case <-time.After(lastWords):
	}
	return c.Conn.Close()
}

func (c *Conn) send() {
	defer close(c.sent)
	var sending []byte
	for {
		sending = c.take(sending)
		if len(sending) == 0 {
			return
		}
		if _, err := c.Conn.Write(sending); err != nil {
			c.fail(err)
			return
		}
	}
}

// take waits for bytes to send, and reuses the memory of the last write for new ones. It returns no bytes once the
// connection is closed.
func (c *Conn) take(sent []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) == 0 && !c.closing {
		c.changed.Wait()
	}
	next := c.pending
	c.pending = sent[:0]
	c.changed.Broadcast()
	return next
}

// fail also ends a read, so that a goroutine that only reads notices the error.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	c.err = err
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.Conn.Close()
}
