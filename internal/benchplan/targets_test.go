//go:build bench

package benchplan

import "testing"

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
func (r row) check(t *testing.T) {
	t.Helper()
	if r.apply.writes > r.objects+moreWrites {
		t.Errorf("the apply sent %d writes for %d objects", r.apply.writes, r.objects)
	}
	if r.plan.writes+r.again.writes+r.change.writes > 0 {
		t.Errorf("writes with nothing to change: plan %d, apply %d; plan of a change %d", r.plan.writes, r.again.writes, r.change.writes)
	}
	if r.pipelines >= 200 && r.ratio() > slowerThanBare {
		t.Errorf("the apply took %.1f times the bare calls, want at most %d", r.ratio(), slowerThanBare)
	}
}

// checkGrowth compares the plan of many pipelines with that of one.
func checkGrowth(t *testing.T, rows []row) {
	t.Helper()
	if len(rows) == 0 {
		t.Fatal("no scenario was run")
	}
	one := rows[0]
	if one.pipelines != 1 {
		return
	}
	for _, r := range rows {
		// Each vhost is listed once.
		if limit := one.plan.reads * r.vhosts; r.plan.reads > limit {
			t.Errorf("%s: planning without a change took %d reads, want at most %d", r.name, r.plan.reads, limit)
		}
		if limit := one.change.reads * r.vhosts; r.change.reads > limit {
			t.Errorf("%s: planning a change took %d reads, want at most %d", r.name, r.change.reads, limit)
		}
	}
}

// checkCover compares the apply of 200 pipelines with that of a build whose policies name work queues only.
func checkCover(t *testing.T, rows []row) {
	t.Helper()
	taken := map[string]float64{}
	for _, r := range rows {
		taken[r.name] = r.apply.took.Seconds()
	}
	with, without := taken["200"], taken["200 work queues only"]
	if with == 0 || without == 0 {
		return
	}
	t.Logf("covering own queues: %.2f times the apply", with/without)
	if with > slowerForCover*without {
		t.Errorf("covering own queues takes %.2f times the apply, want at most %.1f", with/without, slowerForCover)
	}
}

// checkWidth compares the plan of one pipeline of 1,000 work queues with that of 200 pipelines of one work queue each.
func checkWidth(t *testing.T, rows []row) {
	t.Helper()
	taken := map[string]float64{}
	for _, r := range rows {
		taken[r.name] = r.plan.cpu.Seconds()
	}
	if taken["wide"] == 0 || taken["200"] == 0 {
		return
	}
	ratio := taken["wide"] / taken["200"]
	t.Logf("a pipeline of 1,000 work queues: %.2f times the processor time of a plan of 200 pipelines", ratio)
	if ratio > dearerForWidth {
		t.Errorf("a plan of 1,000 work queues takes %.2f times the processor time of one of 200 pipelines, want at most %d", ratio, dearerForWidth)
	}
}
