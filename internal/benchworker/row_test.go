//go:build bench

package benchworker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// row is what was measured of a cell.
type row struct {
	cell

	// results are those of each side, by round.
	results map[string][]result
}

func (r *row) add(side string, taken result) {
	if r.results == nil {
		r.results = map[string][]result{}
	}
	r.results[side] = append(r.results[side], taken)
}

// ratio is the median of a side's figure divided by another's in the same round, 0 if one of them was not measured.
func (r *row) ratio(side, other string, of func(result) float64) float64 {
	var ratios []float64
	for i := range min(len(r.results[side]), len(r.results[other])) {
		ratios = append(ratios, of(r.results[side][i])/of(r.results[other][i]))
	}
	return median(ratios)
}

func (r *row) median(side string, of func(result) float64) float64 {
	var values []float64
	for _, taken := range r.results[side] {
		values = append(values, of(taken))
	}
	return median(values)
}

func rate(r result) float64 { return r.rate }

// cpu is in seconds per million messages.
func cpu(r result) float64 { return r.cpu.Seconds() / float64(r.messages) * 1e6 }

// calls are reads and writes per message.
func calls(r result) float64 { return r.calls / float64(r.messages) }

func peak(r result) float64 { return r.peak }

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// show prints the rows as one table.
func show(t *testing.T, rows []*row) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...string) { _, _ = fmt.Fprintln(table, strings.Join(cells, "\t")+"\t") }
	line("", "", "", "bare", "", "", "", "worker", "", "", "", "many", "shovel", "remote",
		"worker/", "worker/", "worker/", "many/", "cpu/", "versus", "", "", "", "worker/")
	line("queues", "bytes", "window", "msg/s", "cpu", "calls", "MiB", "msg/s", "cpu", "calls", "MiB", "msg/s", "msg/s", "msg/s",
		"bare", "shovel", "remote", "worker", "bare", "msg/s", "cpu", "calls", "MiB", "versus")
	for _, r := range rows {
		cells := []string{r.queueType, fmt.Sprint(r.size), fmt.Sprint(r.window)}
		cells = append(cells, r.process(bare)...)
		cells = append(cells, r.process(one)...)
		cells = append(cells, number(r.median(many, rate), 0), number(r.median(shovel, rate), 0), number(r.median(remote, rate), 0))
		for _, of := range [][2]string{{one, bare}, {one, shovel}, {one, remote}, {many, one}} {
			cells = append(cells, number(r.ratio(of[0], of[1], rate), 2))
		}
		cells = append(cells, number(r.ratio(one, bare, cpu), 2))
		cells = append(cells, r.process(another)...)
		line(append(cells, number(r.ratio(one, another, rate), 2))...)
	}
	_ = table.Flush()
	t.Logf("medians; cpu: seconds of the process per million messages; calls: reads and writes per message\n%s", text.String())
}

func (r *row) process(side string) []string {
	return []string{
		number(r.median(side, rate), 0), number(r.median(side, cpu), 1), number(r.median(side, calls), 2), number(r.median(side, peak), 1),
	}
}

func number(value float64, decimals int) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", decimals, value)
}
