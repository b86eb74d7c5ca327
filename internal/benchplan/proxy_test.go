//go:build bench

package benchplan

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// connections is more than any client opens, so that the proxy never waits for one of its own.
const connections = 256

// proxy forwards to the management API, each request after a delay, and counts.
type proxy struct {
	*httptest.Server

	mu   sync.Mutex
	seen requests
}

// requests are counted by what is asked for.
type requests struct {
	reads, writes int
	kinds         map[string]int
}

func newProxy(t *testing.T, b *brokertest.Broker, delay time.Duration) *proxy {
	t.Helper()
	target, err := url.Parse(b.Endpoint)
	require.NoError(t, err)
	transport := &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections}
	forward := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	p := &proxy{seen: requests{kinds: map[string]int{}}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.count(r)
		time.Sleep(delay) // what is measured is a slow network
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { p.Close(); transport.CloseIdleConnections() })
	return p
}

func (p *proxy) count(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		p.seen.reads++
	} else {
		p.seen.writes++
	}
	p.seen.kinds[kind(r)]++
}

// take returns what was counted since it was last called.
func (p *proxy) take() requests {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = requests{kinds: map[string]int{}}
	return seen
}

// kind is a request without the names in its path: GET queues/vhost is a listing, GET
// queues/vhost/name reads one queue.
func kind(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/api/"), "/")
	placeholders := []string{"", "/vhost", "/name", "/..."}
	return r.Method + " " + parts[0] + strings.Join(placeholders[:min(len(parts), len(placeholders))], "")
}

// lines lists the kinds with their counts.
func (r requests) lines() []string {
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		lines = append(lines, kindLine(kind, r.kinds[kind]))
	}
	return lines
}
