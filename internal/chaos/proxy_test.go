//go:build chaos

package chaos

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// chunk is how much a proxy passes on at a time.
const chunk = 8 << 10

// proxy stands between clients and all nodes, like a load balancer: each connection goes to the next
// node that takes it. And it can be made a bad network.
type proxy struct {
	name     string
	address  string
	listener net.Listener

	mu    sync.Mutex
	nodes []string
	next  int
	conns map[net.Conn]bool
	// passing is closed while data may pass.
	passing chan struct{}
	// delay of each chunk.
	delay time.Duration
}

func newProxy(t *testing.T, name string, nodes ...string) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{
		name: name, address: listener.Addr().String(), nodes: nodes, listener: listener,
		conns: map[net.Conn]bool{}, passing: make(chan struct{}),
	}
	close(p.passing)
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.resume()
		p.cut()
		serving.Wait()
	})
	return p
}

func (p *proxy) String() string { return p.name }

func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer p.track(client)()
			server := p.dial()
			if server == nil {
				return
			}
			defer p.track(server)()
			serving.Go(func() { p.forward(server, client) })
			p.forward(client, server)
		})
	}
}

// dial connects to the first node that answers, from the next one on.
func (p *proxy) dial() net.Conn {
	p.mu.Lock()
	p.next++
	first, nodes := p.next, p.nodes
	p.mu.Unlock()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	for i := range nodes {
		if conn, err := dialer.DialContext(context.Background(), "tcp", nodes[(first+i)%len(nodes)]); err == nil {
			return conn
		}
	}
	return nil
}

// lead takes all connections to these nodes from now on.
func (p *proxy) lead(nodes ...string) {
	p.mu.Lock()
	p.nodes = nodes
	p.mu.Unlock()
	p.cut()
}

// track remembers a connection until the function that it returns closes it.
func (p *proxy) track(conn net.Conn) (closed func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, conn)
		_ = conn.Close()
	}
}

// forward passes data on until one side closes, and then closes both.
func (p *proxy) forward(to, from net.Conn) {
	defer func() { _ = to.Close() }()
	defer func() { _ = from.Close() }()
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		passing, delay := p.passing, p.delay
		p.mu.Unlock()
		<-passing
		time.Sleep(delay)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cut resets every connection. What was on its way is lost.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

// stall lets nothing pass until the connections are resumed.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passing = make(chan struct{})
}

func (p *proxy) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.passing:
	default:
		close(p.passing)
	}
}

// slow delays each chunk; zero makes the network good again.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}
