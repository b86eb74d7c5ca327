//go:build bench

package benchplan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// step is what one command took.
type step struct {
	requests
	took time.Duration
	// cpu is the processor time of the provider's processes.
	cpu time.Duration
}

// row is what one case took; steps that were not measured are nil.
type row struct {
	scenario

	objects                             int
	apply, plan, again, change, destroy *step
	bare                                time.Duration
}

func (r row) ratio() float64 { return r.apply.took.Seconds() / r.bare.Seconds() }

func kindLine(kind string, n int) string { return fmt.Sprintf("%6d  %s", n, kind) }

// show prints the rows as one table.
func show(t *testing.T, rows []row) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...string) { _, _ = fmt.Fprintln(table, strings.Join(cells, "\t")+"\t") }
	line("pipelines", "", "apply", "", "", "", "plan", "", "", "again", "", "", "", "change", "", "", "destroy", "", "", "",
		"bare", "", "apply/")
	line("", "", "r", "w", "s", "cpu", "r", "s", "cpu", "r", "w", "s", "cpu", "r", "s", "cpu", "r", "w", "s", "cpu", "w", "s", "bare")
	for _, r := range rows {
		cells := []string{fmt.Sprint(r.pipelines), r.name}
		cells = append(cells, r.apply.cells(true)...)
		cells = append(cells, r.plan.cells(false)...)
		cells = append(cells, r.again.cells(true)...)
		cells = append(cells, r.change.cells(false)...)
		cells = append(cells, r.destroy.cells(true)...)
		cells = append(cells, fmt.Sprint(r.objects), seconds(r.bare), fmt.Sprintf("%.1f", r.ratio()))
		line(cells...)
	}
	_ = table.Flush()
	t.Logf("r: reads, w: writes, s: seconds, cpu: seconds of processor time of the provider's processes\n%s", text.String())
}

func (s *step) cells(writes bool) []string {
	cells := []string{"-", "-", "-", "-"}
	if s != nil {
		cells = []string{fmt.Sprint(s.reads), fmt.Sprint(s.writes), seconds(s.took), processor(s.cpu)}
	}
	if !writes {
		return slices.Delete(cells, 1, 2)
	}
	return cells
}

func processor(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
