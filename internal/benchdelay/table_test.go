//go:build bench

package benchdelay

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table is text in columns.
type table struct {
	text   *strings.Builder
	writer *tabwriter.Writer
}

func newTable(header ...string) table {
	text := &strings.Builder{}
	show := table{text, tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)}
	show.line(header...)
	return show
}

func (t table) line(cells ...string) { _, _ = fmt.Fprintln(t.writer, strings.Join(cells, "\t")+"\t") }

func (t table) String() string {
	_ = t.writer.Flush()
	return t.text.String()
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// ratios divides figures by others of the same rounds.
func ratios(figures, by []float64) []float64 {
	all := make([]float64, len(figures))
	for i := range figures {
		all[i] = figures[i] / by[i]
	}
	return all
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
