//go:build bench

package benchengines

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

var (
	messages = flag.Int("messages", 7_500, "how many messages each engine gets in its turn")
	rate     = flag.Int("rate", 500, "how many are published a second")
	size     = flag.Int("size", 1024, "size of the bodies, in bytes")
	rounds   = flag.Int("rounds", 3, "how often each engine has its turn")
)

const (
	// failures is how often each message fails before it is processed.
	failures = 2
	// delay is that before each retry: the one that all engines can wait.
	delay = time.Second
)

// The engines take turns, in another order each time: what else the machine does meets all of them.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestEngines(t *testing.T) {
	contenders := newContenders(t, terraformtest.BuildSidecar(t))
	taken := results{benchtest.Results[result]{}}
	for i := range *rounds {
		for k := range contenders {
			c := contenders[(i+k)%len(contenders)]
			taken.Add(c.name, c.turn(t))
		}
		taken.show(t)
	}
}

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
