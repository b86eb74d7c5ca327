package worker_test

import (
	"bytes"
	endian "encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// proxy stands between a worker and the broker. It plays situations that a shared broker cannot be put into.
type proxy struct {
	// rewrite changes a frame that the worker sends. rewriteBack changes a frame for the worker. Both keep its length.
	rewrite, rewriteBack func(frame []byte)
	// answers receives the broker's frames for this worker.
	answers func(worker io.Writer) io.Writer

	mu      sync.Mutex
	workers []*workerConn
}

// workerConn is a worker's connection for whole frames. A connection that does not read holds up no other.
type workerConn struct {
	net.Conn
	mu sync.Mutex
}

func (c *workerConn) Write(frame []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Write(frame)
}

// throughProxy returns the URI of a proxy to the broker.
func (p testVhost) throughProxy(t *testing.T, x *proxy) string {
	t.Helper()
	return brokertest.Between(t, p.URI, x.serve)
}

func (x *proxy) serve(conn, broker net.Conn) {
	greeting := make([]byte, 8)
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return
	}
	if _, err := broker.Write(greeting); err != nil {
		return
	}
	if string(greeting) != "AMQP\x00\x00\x09\x01" {
		brokertest.Join(conn, broker) // AMQP 1.0, which has other frames
		return
	}
	worker := &workerConn{Conn: conn}
	x.mu.Lock()
	x.workers = append(x.workers, worker)
	x.mu.Unlock()
	go func() {
		defer func() { _ = broker.Close() }()
		x.forward(broker, worker, x.rewrite)
	}()
	var answers io.Writer = worker
	if x.answers != nil {
		answers = x.answers(worker)
	}
	x.forward(answers, broker, x.rewriteBack)
}

// forward passes frames on until one side closes.
func (x *proxy) forward(to io.Writer, from io.Reader, rewrite func([]byte)) {
	const header, end = 7, 1
	for {
		start := make([]byte, header)
		if _, err := io.ReadFull(from, start); err != nil {
			return
		}
		frame := slices.Concat(start, make([]byte, endian.BigEndian.Uint32(start[3:])+end))
		if _, err := io.ReadFull(from, frame[header:]); err != nil {
			return
		}
		if rewrite != nil {
			rewrite(frame)
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// block tells the worker that the broker blocks its connections. unblock ends that.
func (x *proxy) block()   { x.tell("\x01\x00\x00\x00\x00\x00\x09\x00\x0a\x00\x3c\x04test\xce") }
func (x *proxy) unblock() { x.tell("\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x3d\xce") }

// hangUp closes all connections.
func (x *proxy) hangUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, worker := range x.workers {
		_ = worker.Close()
	}
}

func (x *proxy) tell(frame string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, worker := range x.workers {
		_, _ = worker.Write([]byte(frame))
	}
}

// invalidate makes the broker refuse each message with this header, which becomes a BCC that is no list.
func invalidate(frame []byte) {
	if at := bytes.Index(frame, []byte("\x03bad")); at >= 0 {
		copy(frame[at:], "\x03BCC")
	}
}
