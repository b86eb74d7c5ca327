//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
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
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// atOnce is how many bare calls are in flight, as many as Terraform has operations.
const atOnce = 10

// call is one write.
type call struct {
	method, path string
	body         any
}

// send sends the calls of up to ten groups side by side, and the calls of one group in order. It returns how long all of them took, on
// connections that are kept alive.
func send(t testing.TB, b *brokertest.Broker, groups [][]call) time.Duration {
	t.Helper()
	began := time.Now()
	var senders errgroup.Group
	senders.SetLimit(atOnce)
	for _, group := range groups {
		senders.Go(func() error {
			var failed []error
			for _, c := range group {
				failed = append(failed, c.send(b))
			}
			return errors.Join(failed...)
		})
	}
	require.NoError(t, senders.Wait())
	return time.Since(began)
}

func (c call) send(b *brokertest.Broker) error {
	status, answer, err := b.Try(c.method, c.path, c.body)
	gone := c.method == http.MethodDelete && status == http.StatusNotFound
	if err == nil && status >= http.StatusMultipleChoices && !gone {
		err = fmt.Errorf("%s %s: %d %s", c.method, c.path, status, answer)
	}
	return err
}

// object is one in JSON.
type object = map[string]any

// creation lists the calls that create a topology, in an order that succeeds.
func creation(vhost string, t topology.Topology) []call {
	set := func(arguments topology.Arguments) object { return maps.Collect(maps.All(arguments)) } // not null, which the API refuses
	var calls []call
	for _, name := range slices.Sorted(maps.Keys(t.Exchanges)) {
		body := object{"type": t.Exchanges[name].Type, "durable": true, "arguments": set(t.Exchanges[name].Arguments)}
		calls = append(calls, call{http.MethodPut, api("exchanges", vhost, name), body})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Queues)) {
		arguments := object{"x-queue-type": t.Queues[name].Type}
		maps.Copy(arguments, t.Queues[name].Arguments)
		calls = append(calls, call{http.MethodPut, api("queues", vhost, name), object{"durable": true, "arguments": arguments}})
	}
	for _, b := range t.Bindings {
		body := object{"routing_key": b.RoutingKey, "arguments": set(b.Arguments)}
		calls = append(calls, call{http.MethodPost, api("bindings", vhost, "e", b.Source, "q", b.Destination), body})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Policies)) {
		policy := t.Policies[name]
		calls = append(calls, call{http.MethodPut, api("policies", vhost, name), object{
			"pattern": policy.Pattern, "apply-to": policy.ApplyTo, "priority": policy.Priority, "definition": policy.Definition,
		}})
	}
	return calls
}

func api(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/api/" + strings.Join(parts, "/")
}

// meter stands between Terraform and a provider, and notes what each of the provider's processes used.
type meter struct{ provider, notes string }

// metered is a process of the provider that notes what it used.
type metered struct{ Provider, Notes string }

func newMeter(t *testing.T, provider string) *meter {
	t.Helper()
	m := &meter{t.TempDir(), t.TempDir()}
	const name = "terraform-provider-rabbitmq"
	self, env := asPart(t, &metered{filepath.Join(provider, name), m.notes})
	script := fmt.Sprintf("#!/bin/sh\nexec env '%s' '%s' \"$@\"", env, self)
	require.NoError(t, os.WriteFile(filepath.Join(m.provider, name), []byte(script), 0o700))
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
	note, failed := json.Marshal(usage{CPU: ended(state), Peak: float64(peak) / 1024})
	return errors.Join(err, failed, os.WriteFile(filepath.Join(m.Notes, strconv.Itoa(state.Pid())), note, 0o600))
}

// take returns what the processes used that ended since it was last called.
func (m *meter) take(t *testing.T) (sum usage) {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(m.notes, "*"))
	if err != nil || len(notes) == 0 {
		t.Fatalf("no process of the provider has ended: %v", err)
	}
	for _, note := range notes {
		text, err := os.ReadFile(note)
		require.NoError(t, errors.Join(err, os.Remove(note)))
		var one usage
		require.NoError(t, json.Unmarshal(text, &one))
		sum = sum.plus(one)
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

// proxy forwards to the management API, each request after a delay, and notes it.
type proxy struct {
	endpoint string

	mu   sync.Mutex
	seen requests
}

// requests are what was sent, without the body.
type requests []call

func newProxy(t *testing.T, b *brokertest.Broker, delay time.Duration) *proxy {
	t.Helper()
	p := &proxy{}
	p.endpoint = b.Before(t, func(r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, call{r.Method, r.URL.RequestURI(), nil})
		p.mu.Unlock()
		time.Sleep(delay) // what is measured is a slow network
	})
	return p
}

// take returns what was sent since it was last called.
func (p *proxy) take() requests {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

// reads are the requests that change nothing, as groups to [send].
func (r requests) reads() (groups [][]call) {
	for _, c := range r {
		if c.method == http.MethodGet || c.method == http.MethodHead {
			groups = append(groups, []call{c})
		}
	}
	return groups
}

func (r requests) writes() int { return len(r) - len(r.reads()) }

// lines counts the requests without the names in their paths: GET queues/vhost is a listing, GET queues/vhost/name reads one queue.
func (r requests) lines() (lines []string) {
	kinds := map[string]int{}
	for _, c := range r {
		path, _, _ := strings.Cut(strings.TrimPrefix(c.path, "/api/"), "?")
		parts := strings.Split(path, "/")
		placeholders := []string{"", "/vhost", "/name", "/..."}
		kinds[c.method+" "+parts[0]+strings.Join(placeholders[:min(len(parts), len(placeholders))], "")]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		lines = append(lines, fmt.Sprintf("%6d  %s", kinds[kind], kind))
	}
	return lines
}
