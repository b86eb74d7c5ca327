//go:build bench

package bench

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

const (
	// failures is how often each message fails before it is processed.
	failures = 2
	// engineWait is the delay before each retry: the one that all engines can wait.
	engineWait = time.Second
	// noFailures is the load without failures.
	noFailures = "no failures"
)

func engineMessages() int { return cmp.Or(*messages, 7_500) }

func engineRate() int { return cmp.Or(*publishRate, 500) }

func TestEngines(t *testing.T) {
	nack := func(d amqp.Delivery) error { return d.Nack(false, false) }
	requeue := func(d amqp.Delivery) error { return d.Reject(true) }
	withWorker := newEngine(t, pipeline.EngineWorker, failures, nack)
	binary := terraformtest.BuildSidecar(t)
	withWorker.start = func() func() usage {
		return withWorker.startSidecar(binary, "pipelines", withWorker.spec.Worker(), worker.DefaultPrefetch)
	}
	var turns []turn
	for _, e := range []*engine{
		newEngine(t, noFailures, 0, nack), withWorker,
		newEngine(t, pipeline.EngineConsumer, failures, nack), newEngine(t, pipeline.EngineNative, failures, requeue),
	} {
		turns = append(turns, turn{e.name, e.turn})
	}
	taken := results{}
	for i := range *rounds {
		taken.round(i, turns)
		showEngines(t, taken)
	}
}

// showEngines prints the medians. The retries alone are what a turn took more than the one without failures.
func showEngines(t *testing.T, taken results) {
	t.Helper()
	show := newTable("", "late p50", "p99", "max", "broker", "per retry", "of worker's", "sidecar")
	late := func(name string, share float64) string {
		return decimal(taken.median(name, func(r result) float64 { return r.late.share(share).Seconds() * 1000 }), 1)
	}
	retries := func(name string) float64 {
		return (taken.median(name, brokerCPU) - taken.median(noFailures, brokerCPU)) / failures
	}
	for _, name := range append([]string{noFailures}, pipeline.Engines()...) {
		if len(taken[name]) > 0 {
			show.line(name, late(name, 0.5), late(name, 0.99), late(name, 1), decimal(taken.median(name, brokerCPU), 1),
				decimal(retries(name), 1), decimal(retries(name)/retries(pipeline.EngineWorker), 2), decimal(taken.median(name, cpu), 1))
		}
	}
	t.Logf("%d messages of %d bytes, %d a second, each fails %d times; medians of %d rounds; late in ms, processor time in µs per message\n%s",
		engineMessages(), *size, engineRate(), failures, len(taken[noFailures]), show)
}

// engine is a pipeline of one, in a vhost of its own.
type engine struct {
	vhost

	failures int
	// fail is the call that the engine needs.
	fail func(amqp.Delivery) error
	spec pipeline.Pipeline
	// start starts the sidecar, if the engine has one.
	start func() (stop func() usage)
}

// newEngine makes the pipeline. The load without failures has the queues of the default engine, and never uses them.
func newEngine(t *testing.T, name string, failures int, fail func(amqp.Delivery) error) *engine {
	t.Helper()
	e := &engine{vhost: newVhost(t, name), failures: failures, fail: fail}
	if !e.VersionAtLeast("4.3.1") {
		t.Fatalf("RabbitMQ %s does not have all engines; run it with BROKER=\"--version 4.3\"", e.Version)
	}
	e.spec = e.retryPipeline(topology.Quorum, engineWait, workQueue)
	e.spec.MaxAttempts = failures + 1
	if failures > 0 {
		e.spec.Engine = name
	}
	e.create(e.spec.Expand())
	return e
}

// turn publishes all messages at the rate, and returns once each has failed as often as it has to and was processed.
func (e *engine) turn() result {
	stop := e.startMover(names.Inbox(), e.start)
	ch, deliveries := e.Consume(e.t, workQueue, 2*engineRate())
	node := e.process()
	before := node.soFar(e.t)
	published := make(chan error, 1)
	go func() {
		published <- e.fill(engineMessages(), *size, engineRate(), func(int) route { return route{key: workQueue} })
	}()
	late := e.consume(deliveries)
	require.NoError(e.t, <-published)
	r := result{messages: engineMessages(), broker: node.soFar(e.t) - before, late: late}
	r.usage = stop()
	_ = ch.Close()
	e.expectEmpty()
	return r
}

// consume has each message fail, and processes it after that. It returns by how much more than the delay each came back late.
func (e *engine) consume(deliveries <-chan amqp.Delivery) (late durations) {
	failed, last := map[string]int{}, map[string]time.Time{}
	for processed := 0; processed < engineMessages(); {
		d := brokertest.Receive(e.t, deliveries)
		if failed[d.MessageId] > 0 {
			late = append(late, time.Since(last[d.MessageId])-engineWait)
		}
		if failed[d.MessageId] < e.failures {
			failed[d.MessageId]++
			last[d.MessageId] = time.Now()
			require.NoError(e.t, e.fail(d))
			continue
		}
		processed++
		require.NoError(e.t, d.Ack(false))
	}
	slices.Sort(late)
	return late
}

// expectEmpty checks that nothing was parked, and nothing is left over.
func (e *engine) expectEmpty() {
	for _, queue := range []string{workQueue, names.FailedQueue()} {
		if n := e.look(queue).Messages; n > 0 {
			e.t.Errorf("%s: %d messages in %s", e.name, n, queue)
		}
	}
}

// process is the broker's, the one that listens at its port. The broker's own idea of its id does not help if it runs in a namespace
// of its own.
func (e *engine) process() process {
	uri, err := amqp.ParseURI(e.URI)
	require.NoError(e.t, err)
	sockets := listening(uri.Port)
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	require.NoError(e.t, err)
	for _, file := range files {
		if socket, err := os.Readlink(file); err != nil || !slices.Contains(sockets, socket) {
			continue // another file, or one that was closed meanwhile
		}
		id, _ := strconv.Atoi(strings.Split(file, "/")[2])
		if p := process(id); strings.HasPrefix(p.read(e.t, "comm"), "beam") {
			return p
		}
	}
	e.t.Fatalf("no process that may be looked at listens at port %d; the broker has to run on this machine", uri.Port)
	return 0
}

// listening lists the sockets that listen at a port, as links to them read.
func listening(port int) (sockets []string) {
	const listens = "0A"
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, _ := os.ReadFile(file) // there may be no IPv6
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line) // 1: address and port, 3: state, 9: inode
			if len(fields) > 9 && fields[3] == listens && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				sockets = append(sockets, "socket:["+fields[9]+"]")
			}
		}
	}
	return sockets
}
