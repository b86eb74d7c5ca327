//go:build bench

package benchworker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
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
	return benchtest.StartPart(t, &benchtest.Pipe{
		URI: p.VhostURI(), Queue: names.Inbox(), Exchange: names.RetryExchange(), Key: pipeline.DelayKey(delay), Messages: n, Window: window,
	})
}

func startProfiled(t *testing.T, p *benchPipeline, _, window int) func() benchtest.Usage {
	t.Helper()
	config, err := json.Marshal(p.config())
	require.NoError(t, err)
	return benchtest.StartPart(t, &profiled{URI: p.URI, Window: window, Config: config, Dir: *profile})
}

// startShovel has the broker move the messages, with or without a network in between.
func startShovel(connects bool) func(t *testing.T, p *benchPipeline, n, window int) func() benchtest.Usage {
	return func(t *testing.T, p *benchPipeline, _, window int) func() benchtest.Usage {
		t.Helper()
		uri := "amqp:///" + url.PathEscape(p.Vhost)
		if connects {
			uri = p.VhostURI()
		}
		path := p.Path("parameters/shovel", "bench")
		status, answer := p.Request(t, http.MethodPut, path, map[string]any{"value": map[string]any{
			"src-protocol": "amqp091", "src-uri": uri, "src-queue": names.Inbox(), "src-prefetch-count": window,
			"dest-protocol": "amqp091", "dest-uri": uri, "dest-exchange": names.RetryExchange(), "dest-exchange-key": pipeline.DelayKey(delay),
			"ack-mode": "on-confirm",
		}})
		if status != http.StatusCreated {
			t.Fatalf("the broker needs the plugin rabbitmq_shovel: %d %s", status, answer)
		}
		return func() benchtest.Usage {
			t.Helper()
			if status, answer := p.Request(t, http.MethodDelete, path, nil); status != http.StatusNoContent {
				t.Fatalf("%d %s", status, answer)
			}
			return benchtest.Usage{}
		}
	}
}

// profiled is a worker that profiles itself: a [benchtest.Part].
type profiled struct {
	URI    string
	Window int
	Config []byte
	Dir    string
}

// Run serves until SIGTERM, and writes the profiles.
func (p *profiled) Run() error {
	config, err := workerconfig.Parse(p.Config)
	if err != nil {
		return err
	}
	uri, err := amqpconn.ParseURI(p.URI)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	cpu, err := os.Create(filepath.Join(p.Dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = worker.Run(ctx, worker.Options{
		Config: config, Prefetch: p.Window, Logger: slog.New(slog.DiscardHandler),
		Brokers: func() ([]amqpconn.URI, error) { return []amqpconn.URI{uri}, nil },
	})
	pprof.StopCPUProfile()
	allocations, create := os.Create(filepath.Join(p.Dir, "allocs.pprof"))
	if create != nil {
		return errors.Join(err, create)
	}
	return errors.Join(err, cpu.Close(), pprof.Lookup("allocs").WriteTo(allocations, 0), allocations.Close())
}
