package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestPlannedIsTheVhostAfterTheApply(t *testing.T) {
	t.Parallel()
	prior, next, bills := orders(), orders(), one(WorkQueue{Type: topology.Quorum})
	bills.Name = "bills"
	next.Delays = next.Delays[:1]
	next.WorkQueues = map[string]WorkQueue{"created": {Type: topology.Quorum}, "new": {Type: topology.Classic}}
	vhost := topology.Vhost{Topology: topology.Merge(liveVhost(prior), Expand(bills)), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	vhost.Queues["work"] = topology.Queue{Type: topology.Quorum}

	planned := AfterApply(next, &prior, vhost)
	want := topology.Render(Expand(next))
	if diff := cmp.Diff(want, topology.Render(Owned(next, planned.Topology))); diff != "" {
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

// A queue that another pipeline has taken over has that pipeline's policy, and is none of this one's business any more,
// also while messages of this one may still come back to it.
func TestQueueThatWasTakenOverIsLeftOut(t *testing.T) {
	t.Parallel()
	taking := one(WorkQueue{Type: topology.Quorum, TakeOverFrom: "orders"})
	taking.Name = "bills"
	workQueues := func(names ...string) map[string]WorkQueue {
		all := map[string]WorkQueue{}
		for _, name := range names {
			all[name] = WorkQueue{Type: topology.Quorum}
		}
		return all
	}
	for name, before := range map[string]struct {
		workQueues map[string]WorkQueue
		detached   []string
	}{
		"with this change": {workQueues("work", "created"), nil},
		"before":           {workQueues("created"), []string{"work"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prior, next := orders(), orders()
			prior.WorkQueues, prior.Detached = before.workQueues, before.detached
			next.WorkQueues, next.Detached = workQueues(), []string{"created", "work"}
			vhost := topology.Vhost{Topology: topology.Merge(liveVhost(prior), Expand(taking)), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
			for _, queue := range next.Detached {
				vhost.Queues[queue] = topology.Queue{Type: topology.Quorum}
			}

			planned := AfterApply(next, &prior, vhost)
			for queue, kept := range map[string]bool{"work": false, "created": true} {
				if _, exists := planned.Queues[queue]; exists != kept {
					t.Errorf("%s: there is %v", queue, exists)
				}
			}
			for _, b := range planned.Bindings {
				if b.Destination == "work" {
					t.Errorf("left of the queue: %s", b)
				}
			}
		})
	}
}

func TestRestoresDeadLetterRouteWhereDeadLettersMayBeHeld(t *testing.T) {
	t.Parallel()
	p := orders()
	for name, test := range map[string]struct {
		alter func(live topology.Topology)
		want  bool
	}{
		"nothing is missing": {func(topology.Topology) {}, false},
		"no exchange":        {func(live topology.Topology) { delete(live.Exchanges, "orders.dlx") }, true},
		"another exchange":   {func(live topology.Topology) { live.Exchanges["orders.dlx"] = topology.Exchange{Type: "topic"} }, true},
		"no inbox":           {func(live topology.Topology) { delete(live.Queues, "orders.inbox") }, true},
		"no retry queue":     {func(live topology.Topology) { delete(live.Queues, "orders.retry.5s") }, false},
	} {
		live := Expand(p)
		test.alter(live)
		if got := RestoresDeadLetterRoute(p, live); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
