//go:build bench

package benchfailed

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

var (
	messages  = flag.Int("messages", 100_000, "how many messages are in the failed queue")
	size      = flag.Int("size", 1024, "size of the bodies, in bytes")
	queueType = flag.String("type", "quorum", "type of the queues")
	rounds    = flag.Int("rounds", 3, "how often each has its turn")
)

// The commands take turns with the bare ones: what else the machine does meets all of them.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestThroughput(t *testing.T) {
	v := newVhost(t, terraformtest.BuildSidecar(t))
	taken := results{benchtest.Results[result]{}}
	for range *rounds {
		v.round(t, taken)
		taken.show(t)
	}
	for _, miss := range taken.misses() {
		t.Error(miss)
	}
}

// round has each of them go over all messages.
func (v *vhost) round(t *testing.T, taken results) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "failed.jsonl")
	v.fill(t)
	taken.Add(bareLook, v.bareLook(t))
	taken.Add(list, v.command(t, "list"))
	taken.Add(export, v.command(t, "export", "--file", file))
	v.Purge(t, names.FailedQueue())
	taken.Add(imports, v.command(t, "import", file, "--yes"))
	v.expect(t, names.FailedQueue())
	taken.Add(replay, v.command(t, "replay", "--all", "--yes", "--record", filepath.Join(t.TempDir(), "audit")))
	v.expect(t, workQueue)
	v.Purge(t, workQueue)
	v.fill(t)
	taken.Add(barePipe, v.barePipe(t))
	v.expect(t, workQueue)
	// The broker drops the last acknowledgements of a channel that closes: what they were for is there again.
	v.Purge(t, names.FailedQueue())
	v.Purge(t, workQueue)
}

// Those who go over the queue.
const (
	barePipe = "bare pipe"
	bareLook = "bare look"
	list     = "list"
	export   = "export"
	imports  = "import"
	replay   = "replay"
)

// targets are shares of the bare pipe's rate in the same round. An import is printed only.
var targets = map[string]float64{list: 1, export: 0.4, replay: 0.5}

// result is what one turn took.
type result struct {
	// rate is in messages per second.
	rate float64
	// cpu is the command's; the bare ones run in the test's process.
	cpu time.Duration
}

type results struct{ benchtest.Results[result] }

func rate(r result) float64 { return r.rate }

// misses lists the targets that are not reached.
func (r results) misses() (misses []string) {
	for _, who := range []string{list, export, replay} {
		if got := r.Ratio(who, barePipe, rate); got < targets[who] {
			misses = append(misses, fmt.Sprintf("%s is %.2f times as fast as the bare pipe, want %.2f", who, got, targets[who]))
		}
	}
	return misses
}

// show prints the results as a table.
func (r results) show(t *testing.T) {
	t.Helper()
	table := benchtest.NewTable("", "msg/s", "cpu", "of bare pipe", "of bare look", "at least")
	cpu := func(r result) float64 { return r.cpu.Seconds() / float64(*messages) * 1e6 }
	for _, who := range []string{barePipe, bareLook, list, export, imports, replay} {
		table.Line(who, benchtest.Number(r.Median(who, rate), 0), benchtest.Number(r.Median(who, cpu), 1),
			benchtest.Number(r.Ratio(who, barePipe, rate), 2), benchtest.Number(r.Ratio(who, bareLook, rate), 2), benchtest.Number(targets[who], 2))
	}
	t.Logf("%d messages of %d bytes in %s queues; medians of %d; cpu: seconds of the process per million messages\n%s",
		*messages, *size, *queueType, len(r.Results[replay]), table)
}
