//go:build bench

package benchworker

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
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
	rounds  = flag.Int("rounds", 3, "how often each side has its turn; twice as often if a target is missed")
	factor  = flag.Float64("factor", 1, "move so many times as many messages")
	versus  = flag.String("versus", "", "another build of the sidecar, to measure next to this one")
	profile = flag.String("profile", "", "directory for profiles of a worker that is measured next to the others")
)

func TestMain(m *testing.M) { benchtest.Main(m, &benchtest.Pipe{}, &profiled{}) }

// cell is one line of the table.
type cell struct {
	queueType    string
	size, window int
}

//nolint:paralleltest // measures, and needs the processors for itself
func TestThroughput(t *testing.T) {
	binary := terraformtest.BuildSidecar(t)
	var rows []*row
	for _, queueType := range chosen(*types, topology.Quorum) {
		t.Run(queueType, func(t *testing.T) {
			contenders := newContenders(t, queueType, binary)
			for _, size := range numbers(t, *sizes, targetSize) {
				for _, window := range numbers(t, *windows, worker.DefaultPrefetch) {
					r := &row{cell: cell{queueType, size, window}, results: benchtest.Results[result]{}}
					rows = append(rows, r)
					r.measure(t, contenders)
					if *quick && len(r.misses()) > 0 {
						r.measure(t, contenders)
					}
				}
			}
		})
	}
	show(t, rows)
	for _, r := range rows {
		for _, miss := range r.misses() {
			t.Errorf("%s, %d bytes, window %d: %s", r.queueType, r.size, r.window, miss)
		}
	}
}

// measure lets the contenders take turns, in another order each time: what else the machine does meets
// all of them.
func (r *row) measure(t *testing.T, contenders []contender) {
	t.Helper()
	for i := range *rounds {
		for k := range contenders {
			c := contenders[(i+k)%len(contenders)]
			r.results.Add(c.name, c.move(t, r.cell))
		}
	}
	show(t, []*row{r})
}

// messages is how many messages make a second or two.
func (c cell) messages() int {
	n := 10_000
	switch {
	case c.window == 1:
		n = 600
	case c.window < 100 || c.size > 4096:
		n = 4_000
	}
	return int(float64(n) * *factor)
}

// chosen splits a flag's list.
func chosen(list, withTarget string) []string {
	if *quick {
		return []string{withTarget}
	}
	return strings.Split(list, ",")
}

func numbers(t *testing.T, list string, withTarget int) []int {
	t.Helper()
	var all []int
	for _, text := range chosen(list, strconv.Itoa(withTarget)) {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

const (
	// samples are how many messages are rejected, one by one.
	samples = 200
	// overheadTarget is for the median, from the rejection to the arrival in the retry queue.
	overheadTarget = 10 * time.Millisecond
)

//nolint:paralleltest // measures, and needs the processors for itself
func TestOverhead(t *testing.T) {
	binary := terraformtest.BuildSidecar(t)
	for queueType := range strings.SplitSeq(*types, ",") {
		t.Run(queueType, func(t *testing.T) {
			p := newPipeline(t, queueType, 1)
			toInbox := p.waits(t, names.Inbox())
			stop := sidecar(binary)(t, p, samples, worker.DefaultPrefetch)
			toRetry := p.waits(t, names.RetryQueue(delay))
			stop()
			t.Logf("from the rejection to the inbox: median %s, one in ten more than %s", toInbox[samples/2], toInbox[samples*9/10])
			t.Logf("from the rejection to the retry queue: median %s, one in ten more than %s", toRetry[samples/2], toRetry[samples*9/10])
			if median := toRetry[samples/2]; queueType == topology.Quorum && median >= overheadTarget {
				t.Errorf("the median is %s, want less than %s", median, overheadTarget)
			}
		})
	}
}

// waits are how long each of some messages took from its rejection to the queue, in order. Nothing else
// is under way then.
func (p *benchPipeline) waits(t *testing.T, queue string) []time.Duration {
	t.Helper()
	ch := p.Channel(t)
	defer func() { _ = ch.Close() }()
	arrivals, err := ch.Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	consuming, work := p.Consume(t, p.queues[0], 0)
	defer func() { _ = consuming.Close() }()
	var all []time.Duration
	for range samples {
		p.Publish(t, "", p.queues[0], amqp.Publishing{DeliveryMode: amqp.Persistent, Body: make([]byte, targetSize)})
		d := <-work
		began := time.Now()
		require.NoError(t, d.Reject(false))
		<-arrivals
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all
}
