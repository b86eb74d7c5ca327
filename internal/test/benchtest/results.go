//go:build bench

package benchtest

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Results are the measurements of each contender, by round.
type Results[R any] map[string][]R

// Add adds the measurement of a round.
func (r Results[R]) Add(who string, taken R) { r[who] = append(r[who], taken) }

// Median returns the median of a figure, or 0 without measurements.
func (r Results[R]) Median(who string, of func(R) float64) float64 {
	var values []float64
	for _, taken := range r[who] {
		values = append(values, of(taken))
	}
	return median(values)
}

// Ratio returns the median ratio of a figure to the other contender's in the same round, or 0 without measurements.
func (r Results[R]) Ratio(who, other string, of func(R) float64) float64 {
	var ratios []float64
	for i := range min(len(r[who]), len(r[other])) {
		ratios = append(ratios, of(r[who][i])/of(r[other][i]))
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

// Table is text in columns.
type Table struct {
	text   *strings.Builder
	writer *tabwriter.Writer
}

// NewTable makes a table with a header.
func NewTable(header ...string) Table {
	text := &strings.Builder{}
	show := Table{text, tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)}
	show.Line(header...)
	return show
}

// Line adds a line.
func (t Table) Line(cells ...string) { _, _ = fmt.Fprintln(t.writer, strings.Join(cells, "\t")+"\t") }

// String is the table's text so far.
func (t Table) String() string {
	_ = t.writer.Flush()
	return t.text.String()
}

// Number formats a number, or returns a dash if it was not measured.
func Number(value float64, decimals int) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", decimals, value)
}

// Milliseconds formats a duration in milliseconds.
func Milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
