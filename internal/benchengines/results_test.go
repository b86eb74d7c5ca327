//go:build bench

package benchengines

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// result is what was measured in one turn.
type result struct {
	took            time.Duration
	broker, sidecar time.Duration
	// late has one entry per retry.
	late []time.Duration
}

type results struct{ benchtest.Results[result] }

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

// show prints the medians. The retries alone are what a turn took more than the one without failures.
func (r results) show(t *testing.T) {
	t.Helper()
	table := benchtest.NewTable("", "late p50", "p99", "max", "broker", "per retry", "of worker's", "sidecar")
	one := func(number float64) string { return fmt.Sprintf("%.1f", number) }
	base := r.Median(without, brokerTime)
	retries := func(name string) float64 { return (r.Median(name, brokerTime) - base) / failures }
	for _, name := range append([]string{without}, pipeline.Engines()...) {
		if len(r.Results[name]) == 0 {
			continue
		}
		table.Line(name, one(r.Median(name, lateness(0.5))), one(r.Median(name, lateness(0.99))), one(r.Median(name, lateness(1))),
			one(r.Median(name, brokerTime)), one(retries(name)), fmt.Sprintf("%.2f", retries(name)/retries(pipeline.EngineWorker)),
			one(r.Median(name, sidecarTime)))
	}
	t.Logf("%d messages of %d bytes, %d a second, each fails %d times; medians of %d rounds; late in ms, processor time in µs per message\n%s",
		*messages, *size, *rate, failures, len(r.Results[without]), table)
}
