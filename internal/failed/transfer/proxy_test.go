package transfer_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// proxy stands between the run and the broker, on the connections for one purpose.
type proxy struct {
	// muted says that nothing reaches the broker any more.
	muted atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

// listen returns the URI of the broker through the proxy.
func (x *proxy) listen(t *testing.T, uri string) string {
	t.Helper()
	return brokertest.Between(t, uri, x.serve)
}

func (x *proxy) serve(client, broker net.Conn) {
	x.mu.Lock()
	x.conns = append(x.conns, client)
	x.mu.Unlock()
	go func() {
		defer func() { _ = broker.Close() }()
		_, _ = io.Copy(unlessMuted{x, broker}, client)
	}()
	_, _ = io.Copy(client, broker)
}

type unlessMuted struct {
	*proxy
	io.Writer
}

func (u unlessMuted) Write(p []byte) (int, error) {
	if u.muted.Load() {
		return len(p), nil
	}
	return u.Writer.Write(p)
}

// cut ends the connections that there are. Later ones are not muted.
func (x *proxy) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, conn := range x.conns {
		_ = conn.Close()
	}
	x.conns = nil
}

// block says that the broker accepts no messages, or does again.
func (x *proxy) block(active bool) {
	frame := "\x01\x00\x00\x00\x00\x00\x09\x00\x0a\x00\x3c\x04test\xce"
	if !active {
		frame = "\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x3d\xce"
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, conn := range x.conns {
		_, _ = conn.Write([]byte(frame))
	}
}
