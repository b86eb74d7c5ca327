//go:build bench

package bench

import (
	"context"
	"errors"
	"fmt"
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
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
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

const (
	manyQueues = 500
	// retryWait is longer than any test: nothing may leave the retry queue.
	retryWait = time.Hour
)

// mover moves messages from the inbox to the retry queue.
type mover struct {
	side string
	at   *workerPipeline
	// start begins to move n messages, at most window at a time, and returns what ends it.
	start func(n, window int) (stop func() usage)
}

func newMovers(t *testing.T, queueType, binary string) []mover {
	t.Helper()
	single := newBusyPipeline(t, queueType, 1)
	all := []mover{
		{bare, single, single.startBare},
		{one, single, single.sidecar(binary)},
		{pair, single, single.replicas(binary)},
		{shovel, single, single.shovel("amqp:///" + url.PathEscape(single.Vhost))},
		{remote, single, single.shovel(single.VhostURI())},
		{another, single, single.sidecar(*versus)},
		{watched, single, single.startProfiled},
	}
	wanted := strings.Split(*sides, ",")
	if *versus != "" {
		wanted = append(wanted, another)
	}
	if *profile != "" {
		wanted = append(wanted, watched)
	}
	if slices.Contains(wanted, many) {
		busy := newBusyPipeline(t, queueType, manyQueues)
		all = append(all, mover{many, busy, busy.sidecar(binary)})
	}
	return slices.DeleteFunc(all, func(m mover) bool { return !slices.Contains(wanted, m.side) })
}

// turn fills the inbox through the work queues in turn, and has its messages moved.
func (m mover) turn(n, size, window int) result {
	require.NoError(m.at.t, m.at.fill(n, size, 0, func(i int) route {
		return route{key: m.at.queues[i%len(m.at.queues)], headers: amqp.Table{"traceparent": traceparent}}
	}))
	return m.at.drain(n, names.Inbox(), names.RetryQueue(retryWait), func() func() usage { return m.start(n, window) })
}

// workerPipeline is what a user would have, with as many work queues.
type workerPipeline struct {
	vhost

	spec   pipeline.Pipeline
	queues []string
}

func newWorkerPipeline(t *testing.T, queueType string, queues int) *workerPipeline {
	t.Helper()
	p := &workerPipeline{vhost: newVhost(t, fmt.Sprintf("%s-%d", queueType, queues))}
	for i := range queues {
		p.queues = append(p.queues, fmt.Sprintf("%s.%03d", workQueue, i))
	}
	p.spec = p.retryPipeline(queueType, retryWait, p.queues...)
	p.create(p.spec.Expand())
	t.Cleanup(func() { // takes the broker too long in one request, that for the vhost
		for _, queue := range p.queues {
			p.Request(t, http.MethodDelete, p.Path("queues", queue), nil)
		}
	})
	return p
}

// newBusyPipeline is one whose work queues have consumers, which reject whatever comes.
func newBusyPipeline(t *testing.T, queueType string, queues int) *workerPipeline {
	t.Helper()
	p := newWorkerPipeline(t, queueType, queues)
	ch, err := p.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Qos(500, 0, false))
	for _, queue := range p.queues {
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		require.NoError(t, err)
		go func() {
			for d := range deliveries {
				_ = d.Reject(false) // if it fails, the message will be missing in the inbox
			}
		}()
	}
	return p
}

func (p *workerPipeline) sidecar(binary string) func(n, window int) func() usage {
	return func(_, window int) func() usage { return p.startSidecar(binary, "pipelines", p.spec.Worker(), window) }
}

// replicas starts two of the sidecar, each with the whole window.
func (p *workerPipeline) replicas(binary string) func(n, window int) func() usage {
	start := p.sidecar(binary)
	return func(n, window int) func() usage {
		first, second := start(n, window), start(n, window)
		return func() usage { return first().plus(second()) }
	}
}

// startBare runs the pipe in a process of its own, as the sidecar has one.
func (p *workerPipeline) startBare(n, window int) func() usage {
	return startPart(p.t, &pipe{p.VhostURI(), names.Inbox(), names.RetryExchange(), pipeline.DelayKey(retryWait), n, window})
}

func (p *workerPipeline) startProfiled(_, window int) func() usage {
	config := text(p.t, map[string]any{"pipelines": []pipeline.Worker{p.spec.Worker()}})
	return startPart(p.t, &profiled{p.URI, window, config, *profile})
}

// shovel has the broker move the messages, over connections to this URI.
func (p *workerPipeline) shovel(uri string) func(n, window int) func() usage {
	path := p.Path("parameters/shovel", "bench")
	return func(_, window int) func() usage {
		status, answer := p.Request(p.t, http.MethodPut, path, map[string]any{"value": map[string]any{
			"src-protocol": "amqp091", "src-uri": uri, "src-queue": names.Inbox(), "src-prefetch-count": window, "dest-protocol": "amqp091",
			"dest-uri": uri, "dest-exchange": names.RetryExchange(), "dest-exchange-key": pipeline.DelayKey(retryWait), "ack-mode": "on-confirm",
		}})
		if status != http.StatusCreated {
			p.t.Fatalf("the broker needs the plugin rabbitmq_shovel: %d %s", status, answer)
		}
		return func() usage {
			p.Call(p.t, http.MethodDelete, path, nil, nil)
			return usage{}
		}
	}
}

// profiled is a worker that profiles itself.
type profiled struct {
	URI         string
	Window      int
	Config, Dir string
}

// Run serves until SIGTERM, and writes the profiles.
func (p *profiled) Run() error {
	config, invalid := workerconfig.Parse([]byte(p.Config))
	uri, wrong := amqpconn.ParseURI(p.URI)
	cpu, noCPU := os.Create(filepath.Join(p.Dir, "cpu.pprof"))
	allocations, noAllocations := os.Create(filepath.Join(p.Dir, "allocs.pprof"))
	if err := errors.Join(invalid, wrong, noCPU, noAllocations, pprof.StartCPUProfile(cpu)); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	err := worker.Run(ctx, worker.Options{
		Config: config, Prefetch: p.Window, Logger: slog.New(slog.DiscardHandler),
		Brokers: func() ([]amqpconn.URI, error) { return []amqpconn.URI{uri}, nil },
	})
	pprof.StopCPUProfile()
	return errors.Join(err, cpu.Close(), pprof.Lookup("allocs").WriteTo(allocations, 0), allocations.Close())
}
