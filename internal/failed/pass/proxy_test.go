package pass_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between the pass and the broker, on the connections for one purpose.
type proxy struct {
	// muted says that nothing reaches the broker any more.
	muted atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

// listen returns the URI of the broker through the proxy.
func (x *proxy) listen(t *testing.T, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address := u.Host
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go x.serve(conn, address)
		}
	}()
	u.Host = listener.Addr().String()
	return u.String()
}

func (x *proxy) serve(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	broker, err := net.Dial("tcp", address) //nolint:noctx // ends with the other side
	if err != nil {
		return
	}
	defer func() { _ = broker.Close() }()
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
