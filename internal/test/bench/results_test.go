//go:build bench

package bench

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what one turn took.
type result struct {
	// usage is that of the contender's processes.
	usage

	// rate is in messages per second.
	rate     float64
	messages int
	// broker is the processor time of the broker.
	broker time.Duration
	// late is by how much each message came after it was due.
	late durations
}

func rate(r result) float64 { return r.rate }

// cpu is in seconds per million messages, which are microseconds per message.
func cpu(r result) float64 { return r.CPU.Seconds() / float64(r.messages) * 1e6 }

// brokerCPU is [cpu] of the broker.
func brokerCPU(r result) float64 { return r.broker.Seconds() / float64(r.messages) * 1e6 }

// calls are reads and writes per message.
func calls(r result) float64 { return r.Calls / float64(r.messages) }

func peak(r result) float64 { return r.Peak }

// durations are sorted.
type durations []time.Duration

// share is how long so many of the durations are at most.
func (d durations) share(of float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[int(of*float64(len(d)-1))]
}

// turn is what a contender does in each round.
type turn struct {
	who  string
	take func() result
}

// results are the measurements of each contender, by round.
type results map[string][]result

func (r results) add(who string, taken result) { r[who] = append(r[who], taken) }

// round has the contenders take their turns, in another order in each round: what else the machine does meets all of them.
func (r results) round(i int, turns []turn) {
	for k := range turns {
		one := turns[(i+k)%len(turns)]
		r.add(one.who, one.take())
	}
}

// median returns the median of a figure, or 0 without measurements.
func (r results) median(who string, figure func(result) float64) float64 {
	var values []float64
	for _, taken := range r[who] {
		values = append(values, figure(taken))
	}
	return median(values)
}

// ratio returns the median ratio of a figure to the other contender's in the same round, or 0 without measurements.
func (r results) ratio(who, other string, figure func(result) float64) float64 {
	var ratios []float64
	for i := range min(len(r[who]), len(r[other])) {
		ratios = append(ratios, figure(r[who][i])/figure(r[other][i]))
	}
	return median(ratios)
}

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

// target is what share of another's rate a contender has to reach.
type target struct {
	who, other string
	least      float64
}

// misses lists the targets that are not reached, of those that were measured.
func (r results) misses(targets ...target) (misses []string) {
	for _, want := range targets {
		if got := r.ratio(want.who, want.other, rate); got != 0 && got < want.least {
			misses = append(misses, fmt.Sprintf("%s is %.2f times as fast as %s, want %.2f", want.who, got, want.other, want.least))
		}
	}
	return misses
}

// table is lines of cells.
type table [][]string

func newTable(header ...string) *table { return &table{header} }

func (t *table) line(cells ...string) { *t = append(*t, cells) }

func (t *table) String() string {
	var content strings.Builder
	columns := tabwriter.NewWriter(&content, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, cells := range *t {
		_, _ = fmt.Fprintln(columns, strings.Join(cells, "\t")+"\t")
	}
	_ = columns.Flush()
	return content.String()
}

// measured formats a number, or returns a dash if it was not measured.
func measured(value float64, decimals int) string {
	if value == 0 {
		return "-"
	}
	return decimal(value, decimals)
}

func decimal(value float64, decimals int) string { return fmt.Sprintf("%.*f", decimals, value) }

// milliseconds formats a duration.
func milliseconds(d time.Duration) string { return decimal(d.Seconds()*1000, 1) }
