package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlannedIsTheVhostAfterTheApply(t *testing.T) {
	t.Parallel()
	prior, next, bills := orders(), orders(), one(WorkQueue{Type: Quorum})
	bills.Name = "bills"
	next.Delays = next.Delays[:1]
	next.WorkQueues = map[string]WorkQueue{"created": {Type: Quorum}, "new": {Type: Classic}}
	vhost := Vhost{Topology: Merge(liveVhost(prior), Expand(bills)), Version: Version{4, 3}, Nodes: 1}
	vhost.Queues["work"] = Queue{Type: Quorum}

	planned := Planned(next, &prior, vhost)
	want := Render(Expand(next), Expand(next))
	if diff := cmp.Diff(want, Render(Owned(next, planned.Topology), Expand(next))); diff != "" {
		t.Errorf("the pipeline: %s", diff)
	}
	if left := Owned(bills, planned.Topology); !left.Empty() {
		t.Errorf("left of another pipeline: %+v", left)
	}
	for name, kept := range map[string]bool{"work": true, "audit": true, "created": true, "new": true, "orders.retry.9s": true, "orders.retry.1m": false, "bills.inbox": false} {
		if _, exists := planned.Queues[name]; exists != kept {
			t.Errorf("%s: there is %v", name, exists)
		}
	}
	if _, kept := planned.Policies["ha"]; !kept {
		t.Error("a policy of nobody is gone")
	}
	if _, untouched := vhost.Queues["bills.inbox"]; !untouched {
		t.Error("the listing was changed")
	}
}

func TestReroutedWhereDeadLettersMayBeHeld(t *testing.T) {
	t.Parallel()
	p := orders()
	for name, test := range map[string]struct {
		alter func(live Topology)
		want  bool
	}{
		"nothing is missing": {func(Topology) {}, false},
		"no exchange":        {func(live Topology) { delete(live.Exchanges, "orders.dlx") }, true},
		"another exchange":   {func(live Topology) { live.Exchanges["orders.dlx"] = Exchange{Type: "topic"} }, true},
		"no inbox":           {func(live Topology) { delete(live.Queues, "orders.inbox") }, true},
		"no retry queue":     {func(live Topology) { delete(live.Queues, "orders.retry.5s") }, false},
	} {
		live := Expand(p)
		test.alter(live)
		if got := Rerouted(p, live); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
