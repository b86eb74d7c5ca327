//go:build bench

package benchworker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/barepipe"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Those who move messages.
const (
	bare    = "bare"   // the pipe
	one     = "worker" // the sidecar, with one work queue
	many    = "many"   // the same with 500
	pair    = "pair"   // two of the sidecar, which share the inbox
	shovel  = "shovel" // within the broker
	remote  = "remote" // a shovel that connects as any client does
	another = "versus"
	watched = "profiled"
)

const manyQueues = 500

// contender moves messages from the inbox to the retry queue.
type contender struct {
	name string
	at   *benchPipeline
	// start begins to move messages, at most window at a time, and returns what ends it.
	start func(t *testing.T, p *benchPipeline, n, window int) (stop func() usage)
}

// result is what one turn took.
type result struct {
	usage

	// rate is in messages per second.
	rate     float64
	messages int
}

func newContenders(t *testing.T, queueType, binary string) []contender {
	t.Helper()
	single := newBusy(t, queueType, 1)
	all := []contender{
		{bare, single, startBare},
		{one, single, sidecar(binary)},
		{pair, single, replicas(binary)},
		{shovel, single, startShovel(false)},
		{remote, single, startShovel(true)},
	}
	wanted := strings.Split(*sides, ",")
	if slices.Contains(wanted, many) {
		all = append(all, contender{many, newBusy(t, queueType, manyQueues), sidecar(binary)})
	}
	if *versus != "" {
		all, wanted = append(all, contender{another, single, sidecar(*versus)}), append(wanted, another)
	}
	if *profile != "" {
		all, wanted = append(all, contender{watched, single, startProfiled}), append(wanted, watched)
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !slices.Contains(wanted, c.name) })
}

// move fills the inbox and has its messages moved.
func (c contender) move(t *testing.T, of cell) result {
	t.Helper()
	n := of.messages()
	c.at.fill(t, n, of.size)
	stop := c.start(t, c.at, n, of.window)
	rate := c.at.watch(t, n)
	r := result{usage: stop(), rate: rate, messages: n}
	c.at.clear(t, n)
	return r
}

// watch measures how fast messages arrive in the retry queue. The first ones do not count, since a
// process has to start.
func (p *benchPipeline) watch(t *testing.T, n int) (rate float64) {
	t.Helper()
	const interval = 10 * time.Millisecond
	var first time.Time
	var before int
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); ; <-ticker.C {
		have, now := p.look(t, names.RetryQueue(delay)).Messages, time.Now()
		switch {
		case have >= n:
			return float64(have-before) / now.Sub(first).Seconds()
		case first.IsZero() && have >= n/20:
			first, before = now, have
		case now.After(deadline):
			t.Fatalf("%d of %d messages arrived", have, n)
		}
	}
}

// sidecar starts a build of it.
func sidecar(binary string) func(t *testing.T, p *benchPipeline, n, window int) func() usage {
	return func(t *testing.T, p *benchPipeline, _, window int) func() usage {
		t.Helper()
		file := filepath.Join(t.TempDir(), "worker.json")
		if err := os.WriteFile(file, p.config(t), 0o600); err != nil {
			t.Fatal(err)
		}
		return start(t, binary, []string{"worker", "--config", file, "--prefetch", strconv.Itoa(window)}, "RABBITMQ_URI="+p.URI)
	}
}

// replicas starts two of it, each with the whole window.
func replicas(binary string) func(t *testing.T, p *benchPipeline, n, window int) func() usage {
	return func(t *testing.T, p *benchPipeline, n, window int) func() usage {
		t.Helper()
		first, second := sidecar(binary)(t, p, n, window), sidecar(binary)(t, p, n, window)
		return func() usage {
			t.Helper()
			a, b := first(), second()
			return usage{cpu: a.cpu + b.cpu, peak: max(a.peak, b.peak), calls: a.calls + b.calls}
		}
	}
}

// startBare runs the pipe in a process of its own, as the sidecar has one.
func startBare(t *testing.T, p *benchPipeline, n, window int) func() usage {
	t.Helper()
	pipe := barepipe.Pipe{
		URI: p.VhostURI(), Queue: names.Inbox(), Exchange: names.RetryExchange(), Key: pipeline.DelayKey(delay), Messages: n, Window: window,
	}
	return startSelf(t, pipe.Setting())
}

func startProfiled(t *testing.T, p *benchPipeline, _, window int) func() usage {
	t.Helper()
	text, err := json.Marshal(profiled{URI: p.URI, Window: window, Config: p.config(t), Dir: *profile})
	if err != nil {
		t.Fatal(err)
	}
	return startSelf(t, profileVariable+"="+string(text))
}

// startSelf starts this program to play another part.
func startSelf(t *testing.T, setting string) func() usage {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, self, nil, setting)
}
