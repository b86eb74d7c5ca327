//go:build bench

package bench

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

var (
	quick   = flag.Bool("quick", false, "measure only what has a target: 1 KiB and the default window on quorum queues")
	types   = flag.String("types", topology.Quorum+","+topology.Classic, "types of the queues")
	sizes   = flag.String("sizes", "256,1024,16384", "sizes of the bodies, in bytes")
	windows = flag.String("windows", "1,32,256,2000", "messages in flight")
	sides   = flag.String("sides", strings.Join([]string{bare, one, many, shovel, remote}, ","), "who moves messages; there is also "+pair)
	factor  = flag.Float64("factor", 1, "move so many times as many messages")
	profile = flag.String("profile", "", "directory for profiles of a worker that is measured next to the others")
)

func TestWorkerThroughput(t *testing.T) {
	binary := terraformtest.BuildSidecar(t)
	types, sizes, windows := *types, *sizes, *windows
	if *quick {
		types, sizes, windows = topology.Quorum, strconv.Itoa(targetSize), strconv.Itoa(worker.DefaultPrefetch)
	}
	var rows []workerRow
	for queueType := range strings.SplitSeq(types, ",") {
		t.Run(queueType, func(t *testing.T) {
			movers := newMovers(t, queueType, binary)
			for _, size := range numbers(t, sizes) {
				for _, window := range numbers(t, windows) {
					r := workerRow{queueType, size, window, results{}}
					rows = append(rows, r)
					r.measure(t, movers)
					if *quick && len(r.missed()) > 0 {
						r.measure(t, movers)
					}
				}
			}
		})
	}
	showWorkers(t, rows)
	for _, r := range rows {
		for _, miss := range r.missed() {
			t.Errorf("%s, %d bytes, window %d: %s", r.queueType, r.size, r.window, miss)
		}
	}
}

func (r workerRow) measure(t *testing.T, movers []mover) {
	t.Helper()
	var turns []turn
	for _, m := range movers {
		turns = append(turns, turn{m.side, func() result { return m.turn(r.count(), r.size, r.window) }})
	}
	for i := range *rounds {
		r.round(i, turns)
	}
	showWorkers(t, []workerRow{r})
}

// count is how many messages make a second or two.
func (r workerRow) count() int {
	n := 10_000
	switch {
	case r.window == 1:
		n = 600
	case r.window < 100 || r.size > 4096:
		n = 4_000
	}
	return int(float64(n) * *factor)
}

func numbers(t *testing.T, list string) (all []int) {
	t.Helper()
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// workerRow is one line of the table.
type workerRow struct {
	queueType    string
	size, window int
	results
}

// showWorkers prints the rows as one table.
func showWorkers(t *testing.T, rows []workerRow) {
	t.Helper()
	show := newTable("", "", "", "bare", "", "", "", "worker", "", "", "", "many", "shovel", "remote",
		"worker/", "worker/", "worker/", "many/", "cpu/", "versus", "", "", "", "worker/")
	show.line("queues", "bytes", "window", "msg/s", "cpu", "calls", "MiB", "msg/s", "cpu", "calls", "MiB", "msg/s", "msg/s", "msg/s",
		"bare", "shovel", "remote", "worker", "bare", "msg/s", "cpu", "calls", "MiB", "versus")
	for _, r := range rows {
		cells := []string{r.queueType, fmt.Sprint(r.size), fmt.Sprint(r.window)}
		cells = append(cells, r.process(bare)...)
		cells = append(cells, r.process(one)...)
		for _, side := range []string{many, shovel, remote} {
			cells = append(cells, measured(r.median(side, rate), 0))
		}
		for _, of := range [][2]string{{one, bare}, {one, shovel}, {one, remote}, {many, one}} {
			cells = append(cells, measured(r.ratio(of[0], of[1], rate), 2))
		}
		cells = append(cells, measured(r.ratio(one, bare, cpu), 2))
		cells = append(cells, r.process(another)...)
		show.line(append(cells, measured(r.ratio(one, another, rate), 2))...)
	}
	t.Logf("medians; cpu: seconds of the process per million messages; calls: reads and writes per message\n%s", show)
}

func (r workerRow) process(side string) []string {
	return []string{
		measured(r.median(side, rate), 0), measured(r.median(side, cpu), 1), measured(r.median(side, calls), 2), measured(r.median(side, peak), 1),
	}
}

// Targets, for 1 KiB with the default window on quorum queues.
const (
	targetSize = 1024

	ofBare = 0.95
	// A shovel on TCP is what another client can do. One within the broker has no network to cross, so it is printed only.
	ofRemote  = 0.9
	ofOne     = 0.9
	memoryMiB = 40
	// ofBareCPU is the share of the bare pipe's processor time that the worker may take.
	ofBareCPU = 1
	// mostCalls is how many reads and writes a message may take: the figure that no other work on the machine can change.
	mostCalls = 1
)

// missed lists the targets that the row does not reach, of those that were measured.
func (r workerRow) missed() []string {
	if r.queueType != topology.Quorum || r.size != targetSize || r.window != worker.DefaultPrefetch {
		return nil
	}
	missed := r.misses(target{one, bare, ofBare}, target{one, remote, ofRemote}, target{many, one, ofOne})
	if got := r.ratio(one, bare, cpu); got > ofBareCPU {
		missed = append(missed, fmt.Sprintf("the worker takes %.2f times the processor time of the bare pipe, want at most %d", got, ofBareCPU))
	}
	if got := r.median(one, peak); got > memoryMiB {
		missed = append(missed, fmt.Sprintf("the worker takes %.1f MiB, want at most %d", got, memoryMiB))
	}
	if got := r.median(one, calls); got > mostCalls {
		missed = append(missed, fmt.Sprintf("the worker reads and writes %.2f times per message, want at most %d", got, mostCalls))
	}
	return missed
}

const (
	// samples are how many messages are rejected, one by one.
	samples = 200
	// overheadTarget is for the median, from the rejection to the arrival in the retry queue.
	overheadTarget = 10 * time.Millisecond
)

func TestWorkerOverhead(t *testing.T) {
	binary := terraformtest.BuildSidecar(t)
	for queueType := range strings.SplitSeq(*types, ",") {
		t.Run(queueType, func(t *testing.T) {
			p := newWorkerPipeline(t, queueType, 1)
			toInbox := p.waits(names.Inbox())
			stop := p.sidecar(binary)(samples, worker.DefaultPrefetch)
			toRetry := p.waits(names.RetryQueue(retryWait))
			stop()
			t.Logf("from the rejection to the inbox: median %s, one in ten more than %s", toInbox.share(0.5), toInbox.share(0.9))
			t.Logf("from the rejection to the retry queue: median %s, one in ten more than %s", toRetry.share(0.5), toRetry.share(0.9))
			if median := toRetry.share(0.5); queueType == topology.Quorum && median >= overheadTarget {
				t.Errorf("the median is %s, want less than %s", median, overheadTarget)
			}
		})
	}
}

// waits are how long each of some messages took from its rejection to the queue. Nothing else is under way then.
func (p *workerPipeline) waits(queue string) (all durations) {
	ch := p.Channel(p.t)
	defer func() { _ = ch.Close() }()
	arrivals, err := ch.Consume(queue, "", true, false, false, false, nil)
	require.NoError(p.t, err)
	consuming, work := p.Consume(p.t, p.queues[0], 0)
	defer func() { _ = consuming.Close() }()
	for range samples {
		p.Publish(p.t, "", p.queues[0], amqp.Publishing{DeliveryMode: amqp.Persistent, Body: make([]byte, targetSize)})
		d := <-work
		began := time.Now()
		require.NoError(p.t, d.Reject(false))
		<-arrivals
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all
}
