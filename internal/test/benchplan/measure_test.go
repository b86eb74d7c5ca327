//go:build bench

package benchplan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// meter stands between Terraform and a provider, and notes what each of the provider's processes used.
type meter struct{ provider, notes string }

// metered is a process of the provider that notes what it used.
type metered struct{ Provider, Notes string }

// used is what processes of the provider used: processor time, and the largest resident memory of one of them in KiB.
type used struct {
	CPU    time.Duration
	Memory int64
}

func newMeter(t *testing.T, provider string) *meter {
	t.Helper()
	m := &meter{t.TempDir(), t.TempDir()}
	const name = "terraform-provider-rabbitmq"
	self, err := os.Executable()
	require.NoError(t, err)
	start := benchtest.Command(t, self, &metered{filepath.Join(provider, name), m.notes})
	require.NoError(t, os.WriteFile(filepath.Join(m.provider, name), []byte("#!/bin/sh\nexec "+start+` "$@"`), 0o700))
	return m
}

// Run runs the provider.
func (m *metered) Run() error {
	command := exec.CommandContext(context.Background(), m.Provider, os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	state := command.ProcessState
	if state == nil {
		return err
	}
	// The peak includes the one of this process, which is far lower.
	peak := state.SysUsage().(*syscall.Rusage).Maxrss
	note, failed := json.Marshal(used{state.UserTime() + state.SystemTime(), peak})
	return errors.Join(err, failed, os.WriteFile(filepath.Join(m.Notes, strconv.Itoa(state.Pid())), note, 0o600))
}

// take returns what the processes used that ended since it was last called.
func (m *meter) take(t *testing.T) (sum used) {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(m.notes, "*"))
	if err != nil || len(notes) == 0 {
		t.Fatalf("no process of the provider has ended: %v", err)
	}
	for _, note := range notes {
		text, err := os.ReadFile(note)
		require.NoError(t, errors.Join(err, os.Remove(note)))
		var one used
		require.NoError(t, json.Unmarshal(text, &one))
		sum = used{sum.CPU + one.CPU, max(sum.Memory, one.Memory)}
	}
	return sum
}

// childrenTime returns the processor time of all programs that this process has run and waited for, and of theirs.
func childrenTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
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
	// paths are those of the reads, with their queries.
	paths []string
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
		p.seen.paths = append(p.seen.paths, r.URL.RequestURI())
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
