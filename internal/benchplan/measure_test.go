//go:build bench

package benchplan

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// meter stands between Terraform and a provider, and notes the processor time of each of the provider's processes.
type meter struct{ provider, notes string }

// meterScript runs the provider and notes, as the shell does for its children, what it took: two lines, of which the
// second is the children's user and system time. A process has a file of its own.
const meterScript = `#!/bin/sh
%q "$@"
code=$?
times > %q/$$
exit $code
`

func newMeter(t *testing.T, provider string) *meter {
	t.Helper()
	m := &meter{t.TempDir(), t.TempDir()}
	name := "terraform-provider-rabbitmq"
	script := fmt.Sprintf(meterScript, filepath.Join(provider, name), m.notes)
	require.NoError(t, os.WriteFile(filepath.Join(m.provider, name), []byte(script), 0o700))
	return m
}

// take returns the processor time, user and system, of the processes that ended since it was last called.
func (m *meter) take(t *testing.T) time.Duration {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(m.notes, "*"))
	if err != nil || len(notes) == 0 {
		t.Fatalf("no process of the provider has ended: %v", err)
	}
	var sum time.Duration
	for _, note := range notes {
		text, err := os.ReadFile(note)
		if err == nil {
			err = os.Remove(note)
		}
		require.NoError(t, err)
		sum += childrenTime(t, string(text))
	}
	return sum
}

// childrenTime reads what the shell's times prints, such as "0m0.01s 0m0.00s" and a second such line.
func childrenTime(t *testing.T, printed string) (sum time.Duration) {
	t.Helper()
	fields := strings.Fields(printed)
	for _, field := range fields[len(fields)/2:] {
		taken, err := time.ParseDuration(field)
		require.NoError(t, err)
		sum += taken
	}
	return sum
}

// proxy forwards to the management API, each request after a delay, and counts.
type proxy struct {
	endpoint string

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
	p := &proxy{seen: requests{kinds: map[string]int{}}}
	p.endpoint = b.Before(t, func(r *http.Request) {
		p.count(r)
		time.Sleep(delay) // what is measured is a slow network
	})
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
		lines = append(lines, fmt.Sprintf("%6d  %s", r.kinds[kind], kind))
	}
	return lines
}
