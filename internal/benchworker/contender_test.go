//go:build bench

package benchworker

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
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
	start func(t *testing.T, p *benchPipeline, n, window int) (stop func() benchtest.Usage)
}

// result is what one turn took.
type result struct {
	benchtest.Usage

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
	rate := c.at.Watch(t, names.RetryQueue(delay), n)
	r := result{Usage: stop(), rate: rate, messages: n}
	c.at.clear(t, n)
	return r
}

// sidecar starts a build of it.
func sidecar(binary string) func(t *testing.T, p *benchPipeline, n, window int) func() benchtest.Usage {
	return func(t *testing.T, p *benchPipeline, _, window int) func() benchtest.Usage {
		t.Helper()
		return p.StartSidecar(t, binary, p.config(), window)
	}
}

// replicas starts two of it, each with the whole window.
func replicas(binary string) func(t *testing.T, p *benchPipeline, n, window int) func() benchtest.Usage {
	return func(t *testing.T, p *benchPipeline, n, window int) func() benchtest.Usage {
		t.Helper()
		first, second := sidecar(binary)(t, p, n, window), sidecar(binary)(t, p, n, window)
		return func() benchtest.Usage {
			t.Helper()
			a, b := first(), second()
			return benchtest.Usage{CPU: a.CPU + b.CPU, Peak: max(a.Peak, b.Peak), Calls: a.Calls + b.Calls}
		}
	}
}

// startBare runs the pipe in a process of its own, as the sidecar has one.
func startBare(t *testing.T, p *benchPipeline, n, window int) func() benchtest.Usage {
	t.Helper()
	pipe := benchtest.Pipe{
		URI: p.VhostURI(), Queue: names.Inbox(), Exchange: names.RetryExchange(), Key: pipeline.DelayKey(delay), Messages: n, Window: window,
	}
	return benchtest.StartSelf(t, pipe.Setting())
}

func startProfiled(t *testing.T, p *benchPipeline, _, window int) func() benchtest.Usage {
	t.Helper()
	config, err := json.Marshal(p.config())
	require.NoError(t, err)
	text, err := json.Marshal(profiled{URI: p.URI, Window: window, Config: config, Dir: *profile})
	require.NoError(t, err)
	return benchtest.StartSelf(t, profileVariable+"="+string(text))
}
