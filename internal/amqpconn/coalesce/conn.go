// Package coalesce turns many small writes to a connection into few larger ones.
//
// An AMQP client makes a system call per publish and per acknowledgement, and the broker wakes up for
// each; together they cost more than what is done with the message. Here a write only adds to what one
// goroutine sends at once, and again as soon as there is more: nothing waits for a timer or for a buffer
// to fill.
package coalesce

import (
	"bufio"
	"net"
	"sync"
	"time"
)

const (
	// atMost is how much waits to be sent before a write waits, too: a broker that does not read is
	// felt by those who write.
	atMost = 128 << 10
	// readAtFirst is how much of what has come is read at once, until that is too little: a connection that is mostly idle is
	// not to cost more. Then it is readAtMost.
	readAtFirst = 4 << 10
	readAtMost  = 64 << 10
	// lastWords is how long closing waits for what was written before.
	lastWords = time.Second
)

// Conn sends what is written to it from a goroutine of its own, which ends with [Conn.Close]. Like a
// client, it is read by one goroutine.
type Conn struct {
	net.Conn
	received *bufio.Reader
	// crowded says that as much has come as fits received, and that it can be larger.
	crowded bool

	mu sync.Mutex
	// pending is to be sent next; its memory and that of what is being sent take turns.
	pending []byte
	// err is why nothing can be sent any more.
	err error
	// changed tells the sender that there is something to send, and writers that there is room.
	changed sync.Cond

	// deadline is for all that is read and written, zero if there is none.
	deadline time.Time

	closing bool
	// sent is closed when the sender has ended.
	sent chan struct{}
}

// New takes a connection over.
func New(conn net.Conn) *Conn {
	c := &Conn{Conn: conn, received: bufio.NewReaderSize(conn, readAtFirst), sent: make(chan struct{})}
	c.changed.L = &c.mu
	go c.send()
	return c
}

// Read returns what there is, as any connection does.
func (c *Conn) Read(p []byte) (int, error) {
	if c.crowded && c.received.Buffered() == 0 {
		c.received, c.crowded = bufio.NewReaderSize(c.Conn, readAtMost), false
	}
	n, err := c.received.Read(p)
	c.crowded = c.crowded || c.received.Size() < readAtMost && n+c.received.Buffered() >= c.received.Size()
	return n, err
}

// Write fails if an earlier write turned out to have failed. That data was taken says as little about
// whether it arrives as with any connection.
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

// SetDeadline holds until the next one.
func (c *Conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline does not put off the deadline for everything: a client that closes the connection sets that one, and goes on
// setting this one whenever something comes.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deadline.IsZero() && (t.IsZero() || t.After(c.deadline)) {
		t = c.deadline
	}
	return c.Conn.SetReadDeadline(t)
}

// Close sends what was written, unless that takes long, and closes the connection.
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

// take waits for something to send, in exchange for the memory of what was sent; there is nothing when
// the connection is closed.
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

// fail also ends a read, so that whoever only reads learns of it.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	c.err = err
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.Conn.Close()
}
