//go:build bench

package benchfailed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

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

// results are those of each, by round.
type results map[string][]result

func (r results) add(who string, taken result) { r[who] = append(r[who], taken) }

// ratio is the median of one's rate divided by another's in the same round.
func (r results) ratio(who, other string) float64 {
	var ratios []float64
	for i := range r[who] {
		ratios = append(ratios, r[who][i].rate/r[other][i].rate)
	}
	return median(ratios)
}

func (r results) median(who string, of func(result) float64) float64 {
	var values []float64
	for _, taken := range r[who] {
		values = append(values, of(taken))
	}
	return median(values)
}

func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// misses lists the targets that are not reached.
func (r results) misses() (misses []string) {
	for _, who := range []string{list, export, replay} {
		if got := r.ratio(who, barePipe); got < targets[who] {
			misses = append(misses, fmt.Sprintf("%s is %.2f times as fast as the bare pipe, want %.2f", who, got, targets[who]))
		}
	}
	return misses
}

// show prints the results as a table.
func (r results) show(t *testing.T) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "\tmsg/s\tcpu\tof bare pipe\tof bare look\tat least\t")
	for _, who := range []string{barePipe, bareLook, list, export, imports, replay} {
		least := "-"
		if target, ok := targets[who]; ok {
			least = fmt.Sprintf("%.2f", target)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.0f\t%.1f\t%.2f\t%.2f\t%s\t\n", who, r.median(who, func(r result) float64 { return r.rate }),
			r.median(who, func(r result) float64 { return r.cpu.Seconds() / float64(*messages) * 1e6 }),
			r.ratio(who, barePipe), r.ratio(who, bareLook), least)
	}
	_ = table.Flush()
	t.Logf("%d messages of %d bytes in %s queues; medians of %d; cpu: seconds of the process per million messages\n%s",
		*messages, *size, *queueType, len(r[replay]), text.String())
}
