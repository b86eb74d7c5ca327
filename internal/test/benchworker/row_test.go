//go:build bench

package benchworker

import (
	"fmt"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// row is what was measured of a cell.
type row struct {
	cell

	results benchtest.Results[result]
}

func rate(r result) float64 { return r.rate }

// cpu is in seconds per million messages.
func cpu(r result) float64 { return r.CPU.Seconds() / float64(r.messages) * 1e6 }

// calls are reads and writes per message.
func calls(r result) float64 { return r.Calls / float64(r.messages) }

func peak(r result) float64 { return r.Peak }

// show prints the rows as one table.
func show(t *testing.T, rows []*row) {
	t.Helper()
	table := benchtest.NewTable("", "", "", "bare", "", "", "", "worker", "", "", "", "many", "shovel", "remote",
		"worker/", "worker/", "worker/", "many/", "cpu/", "versus", "", "", "", "worker/")
	table.Line("queues", "bytes", "window", "msg/s", "cpu", "calls", "MiB", "msg/s", "cpu", "calls", "MiB", "msg/s", "msg/s", "msg/s",
		"bare", "shovel", "remote", "worker", "bare", "msg/s", "cpu", "calls", "MiB", "versus")
	for _, r := range rows {
		cells := []string{r.queueType, fmt.Sprint(r.size), fmt.Sprint(r.window)}
		cells = append(cells, r.process(bare)...)
		cells = append(cells, r.process(one)...)
		for _, side := range []string{many, shovel, remote} {
			cells = append(cells, benchtest.Number(r.results.Median(side, rate), 0))
		}
		for _, of := range [][2]string{{one, bare}, {one, shovel}, {one, remote}, {many, one}} {
			cells = append(cells, benchtest.Number(r.results.Ratio(of[0], of[1], rate), 2))
		}
		cells = append(cells, benchtest.Number(r.results.Ratio(one, bare, cpu), 2))
		cells = append(cells, r.process(another)...)
		table.Line(append(cells, benchtest.Number(r.results.Ratio(one, another, rate), 2))...)
	}
	t.Logf("medians; cpu: seconds of the process per million messages; calls: reads and writes per message\n%s", table)
}

func (r *row) process(side string) []string {
	return []string{
		benchtest.Number(r.results.Median(side, rate), 0), benchtest.Number(r.results.Median(side, cpu), 1),
		benchtest.Number(r.results.Median(side, calls), 2), benchtest.Number(r.results.Median(side, peak), 1),
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
	// perMessage is how many reads and writes a message may take: the figure that no other work on the
	// machine can change.
	perMessage = 1
)

// misses lists the targets that the row does not reach, of those that were measured.
func (r *row) misses() (misses []string) {
	if r.queueType != topology.Quorum || r.size != targetSize || r.window != worker.DefaultPrefetch {
		return nil
	}
	for _, target := range []struct {
		side, other string
		least       float64
	}{{one, bare, ofBare}, {one, remote, ofRemote}, {many, one, ofOne}} {
		if got := r.results.Ratio(target.side, target.other, rate); got != 0 && got < target.least {
			misses = append(misses, fmt.Sprintf("%s is %.2f times as fast as %s, want %.2f", target.side, got, target.other, target.least))
		}
	}
	if got := r.results.Ratio(one, bare, cpu); got > ofBareCPU {
		misses = append(misses, fmt.Sprintf("the worker takes %.2f times the processor time of the bare pipe, want at most %d", got, ofBareCPU))
	}
	if got := r.results.Median(one, peak); got > memoryMiB {
		misses = append(misses, fmt.Sprintf("the worker takes %.1f MiB, want at most %d", got, memoryMiB))
	}
	if got := r.results.Median(one, calls); got > perMessage {
		misses = append(misses, fmt.Sprintf("the worker reads and writes %.2f times per message, want at most %d", got, perMessage))
	}
	return misses
}
