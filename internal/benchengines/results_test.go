//go:build bench

package benchengines

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// result is what was measured in one turn.
type result struct {
	took            time.Duration
	broker, sidecar time.Duration
	// late has one entry per retry.
	late []time.Duration
}

// results are those of each engine, by round.
type results map[string][]result

// perMessage is processor time in microseconds.
func perMessage(used time.Duration) float64 {
	return float64(used.Microseconds()) / float64(*messages)
}

func brokerTime(r result) float64 { return perMessage(r.broker) }

func sidecarTime(r result) float64 { return perMessage(r.sidecar) }

// lateness is by how many milliseconds this share of the retries was late at most.
func lateness(share float64) func(result) float64 {
	return func(r result) float64 {
		if len(r.late) == 0 {
			return 0
		}
		late := slices.Sorted(slices.Values(r.late))
		return float64(late[int(share*float64(len(late)-1))].Microseconds()) / 1000
	}
}

// median is that of the rounds.
func (r results) median(name string, of func(result) float64) float64 {
	var values []float64
	for _, taken := range r[name] {
		values = append(values, of(taken))
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// show prints the medians. The retries alone are what a turn took more than the one without failures.
func (r results) show(t *testing.T) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...any) {
		for _, cell := range cells {
			if number, ok := cell.(float64); ok {
				cell = fmt.Sprintf("%.1f", number)
			}
			_, _ = fmt.Fprintf(table, "%v\t", cell)
		}
		_, _ = fmt.Fprintln(table)
	}
	base := r.median(without, brokerTime)
	retries := func(name string) float64 { return (r.median(name, brokerTime) - base) / failures }
	line("", "late p50", "p99", "max", "broker", "per retry", "of worker's", "sidecar")
	for _, name := range append([]string{without}, pipeline.Engines()...) {
		if len(r[name]) == 0 {
			continue
		}
		line(name, r.median(name, lateness(0.5)), r.median(name, lateness(0.99)), r.median(name, lateness(1)),
			r.median(name, brokerTime), retries(name), fmt.Sprintf("%.2f", retries(name)/retries(pipeline.EngineWorker)),
			r.median(name, sidecarTime))
	}
	_ = table.Flush()
	t.Logf("%d messages of %d bytes, %d a second, each fails %d times; medians of %d rounds; late in ms, processor time in µs per message\n%s",
		*messages, *size, *rate, failures, len(r[without]), text.String())
}
