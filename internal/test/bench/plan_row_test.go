//go:build bench

package bench

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// step is what one command took.
type step struct {
	requests
	// usage is that of the provider's processes.
	usage

	took time.Duration
	// all is the processor time of the provider's processes and Terraform's.
	all time.Duration
}

// planRow is what one case took; steps that were not measured are nil.
type planRow struct {
	scenario

	objects                             int
	apply, plan, again, change, destroy *step
	bare                                time.Duration
	// answers is how long the broker takes for the answers of the plan, asked side by side.
	answers time.Duration
}

func (r planRow) ratio() float64 { return r.apply.took.Seconds() / r.bare.Seconds() }

// showPlans prints the rows as one table.
func showPlans(t *testing.T, rows []planRow) {
	t.Helper()
	show := newTable("pipelines", "", "apply", "", "", "", "plan", "", "", "again", "", "", "", "change", "", "", "destroy", "", "", "",
		"bare", "", "apply/")
	show.line("", "", "r", "w", "s", "cpu", "r", "s", "cpu", "r", "w", "s", "cpu", "r", "s", "cpu", "r", "w", "s", "cpu", "w", "s", "bare")
	for _, r := range rows {
		cells := []string{fmt.Sprint(r.pipelines), r.name}
		cells = append(cells, r.apply.cells(true)...)
		cells = append(cells, r.plan.cells(false)...)
		cells = append(cells, r.again.cells(true)...)
		cells = append(cells, r.change.cells(false)...)
		cells = append(cells, r.destroy.cells(true)...)
		cells = append(cells, fmt.Sprint(r.objects), seconds(r.bare, 1), decimal(r.ratio(), 1))
		show.line(cells...)
	}
	for _, r := range rows {
		t.Logf("%s: the plan took %.1f times as long as its answers alone, %s s", r.name, r.plan.took.Seconds()/r.answers.Seconds(), seconds(r.answers, 1))
	}
	t.Logf("r: reads, w: writes, s: seconds, cpu: seconds of processor time of the provider's processes\n%s", show)
}

func (s *step) cells(writes bool) []string {
	cells := []string{"-", "-", "-", "-"}
	if s != nil {
		cells = []string{fmt.Sprint(len(s.reads())), fmt.Sprint(s.writes()), seconds(s.took, 1), seconds(s.CPU, 2)}
	}
	if !writes {
		return slices.Delete(cells, 1, 2)
	}
	return cells
}

func seconds(d time.Duration, decimals int) string { return decimal(d.Seconds(), decimals) }

const (
	// moreWrites is how many writes an apply may send beyond one per object.
	moreWrites = 10
	// slowerThanBare is how many times the bare calls an apply may take.
	slowerThanBare = 3
	// slowerForCover is how many times as long an apply may take because policies cover own queues, too.
	slowerForCover = 1.3
	// dearerForWidth is how many times the processor time of a plan of 200 pipelines a plan of one of 1,000 work queues may take.
	dearerForWidth = 2
)

// check compares a row with what is promised of every one.
func (r planRow) check(t *testing.T) {
	t.Helper()
	if r.beside == "" && r.apply.writes() > r.objects+moreWrites {
		t.Errorf("the apply sent %d writes for %d objects", r.apply.writes(), r.objects)
	}
	if r.plan.writes()+r.again.writes()+r.change.writes() > 0 {
		t.Errorf("writes with nothing to change: plan %d, apply %d; plan of a change %d", r.plan.writes(), r.again.writes(), r.change.writes())
	}
	// Of thousands of resources, Terraform itself takes most of the time.
	if r.pipelines >= 200 && !r.plain && r.ratio() > slowerThanBare {
		t.Errorf("the apply took %.1f times the bare calls, want at most %d", r.ratio(), slowerThanBare)
	}
}

// compare prints the duration of each step for both builds.
func (r planRow) compare(t *testing.T, other planRow) {
	t.Helper()
	t.Logf("plan: %.2f of the processor time of the other build", r.plan.CPU.Seconds()/other.plan.CPU.Seconds())
	compared := map[string][2]*step{"plan": {r.plan, other.plan}, "apply": {r.apply, other.apply}, "destroy": {r.destroy, other.destroy}}
	for _, what := range slices.Sorted(maps.Keys(compared)) {
		mine, others := compared[what][0], compared[what][1]
		if mine != nil && others != nil {
			t.Logf("%s: %.2f of the time of the other build", what, mine.took.Seconds()/others.took.Seconds())
		}
	}
}

// checkGrowth compares the plan of many pipelines with that of one.
func checkGrowth(t *testing.T, rows []planRow) {
	t.Helper()
	if len(rows) == 0 {
		t.Fatal("no scenario was run")
	}
	one := rows[0]
	if one.pipelines != 1 {
		return
	}
	for _, r := range rows {
		more := 0
		if r.plain {
			more = 1 // limits of vhosts
		}
		check := func(what string, taken, ofOne *step) {
			// Each vhost is listed once.
			if got, limit := len(taken.reads()), len(ofOne.reads())*r.vhosts+more; got > limit {
				t.Errorf("%s: planning %s took %d reads, want at most %d", r.name, what, got, limit)
			}
		}
		check("without a change", r.plan, one.plan)
		check("a change", r.change, one.change)
	}
}

// checkRatio compares a figure of a scenario with that of another one, if both were measured.
func checkRatio(t *testing.T, rows []planRow, what, name, other string, figure func(planRow) time.Duration, most float64) {
	t.Helper()
	taken := map[string]float64{}
	for _, r := range rows {
		taken[r.name] = figure(r).Seconds()
	}
	if taken[name] == 0 || taken[other] == 0 {
		return
	}
	ratio := taken[name] / taken[other]
	t.Logf("%s: %.2f times", what, ratio)
	if ratio > most {
		t.Errorf("%s: %.2f times, want at most %.1f", what, ratio, most)
	}
}
