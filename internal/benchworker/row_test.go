//go:build bench

package benchworker

import (
	"fmt"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
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
