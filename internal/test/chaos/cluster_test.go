//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// node is one of those that scripts/with-cluster has started.
type node struct {
	number int
	folder string
	// The listeners, as host:port.
	amqp, management string
}

func (n *node) String() string { return fmt.Sprintf("node %d", n.number) }

// cluster finds the nodes in the environment.
func cluster(t *testing.T) []*node {
	t.Helper()
	folder := os.Getenv("RABBITMQ_CLUSTER")
	uris, endpoints := strings.Fields(os.Getenv("RABBITMQ_URIS")), strings.Fields(os.Getenv("RABBITMQ_ENDPOINTS"))
	if folder == "" || len(uris) != len(endpoints) {
		t.Fatal("no cluster: run `make chaos`, or scripts/with-cluster -- go test -tags=chaos ./internal/test/chaos")
	}
	var nodes []*node
	for i := range uris {
		nodes = append(nodes, &node{
			number: i + 1,
			folder: filepath.Join(folder, strconv.Itoa(i+1)),
			amqp:   host(t, uris[i]), management: host(t, endpoints[i]),
		})
	}
	return nodes
}

// addresses are the nodes' listeners.
func addresses(nodes []*node) (amqp, management []string) {
	for _, n := range nodes {
		amqp, management = append(amqp, n.amqp), append(management, n.management)
	}
	return amqp, management
}

func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

// kill ends the node's processes without warning.
func (n *node) kill() error { return n.signal(syscall.SIGKILL) }

// freeze stops the node's processes until they are thawed. Their connections stay open.
func (n *node) freeze() error { return n.signal(syscall.SIGSTOP) }

func (n *node) thaw() error { return n.signal(syscall.SIGCONT) }

func (n *node) signal(s syscall.Signal) error {
	content, err := os.ReadFile(filepath.Join(n.folder, "group"))
	if err != nil {
		return err
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return err
	}
	return syscall.Kill(-group, s)
}

// start waits until the node's processes are gone, and begins to start it again.
func (n *node) start() error {
	return os.WriteFile(filepath.Join(n.folder, "start"), []byte("\n"), 0)
}

// ctl runs rabbitmqctl for the node.
func (n *node) ctl(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, filepath.Join(n.folder, "ctl"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: rabbitmqctl %s: %w\n%s", n, strings.Join(args, " "), err, output)
	}
	return nil
}

// chunk is how much a proxy passes on at a time.
const chunk = 8 << 10

// proxy stands between clients and all nodes, like a load balancer: each connection goes to the next
// node that takes it. And it can be made a bad network.
type proxy struct {
	name    string
	address string

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
	p := &proxy{name: name, nodes: nodes, conns: map[net.Conn]bool{}, passing: make(chan struct{})}
	close(p.passing)
	t.Cleanup(func() { // once nobody listens any more
		p.resume()
		p.cut()
	})
	p.address = brokertest.Listen(t, p.serve)
	return p
}

func (p *proxy) String() string { return p.name }

func (p *proxy) serve(client net.Conn) {
	defer p.track(client)()
	server := p.dial()
	if server == nil {
		return
	}
	defer p.track(server)()
	go p.forward(server, client)
	p.forward(client, server)
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
