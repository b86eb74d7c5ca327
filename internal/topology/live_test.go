package topology

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// liveVhost is what a broker has of the pipeline, among objects of others.
func liveVhost(p Pipeline) Topology {
	live := Expand(p)
	for name, workQueue := range p.WorkQueues {
		if !workQueue.Declare {
			live.Queues[name] = Queue{Type: workQueue.Type}
		}
	}
	live.Exchanges["bills.dlx"] = Exchange{Type: "fanout"}
	live.Queues["orders.retry.9s"] = Queue{Type: Quorum, Arguments: Arguments{"x-dead-letter-exchange": "elsewhere"}}
	live.Queues["audit"] = Queue{Type: Classic}
	live.Policies["retry/bills/queues"] = Policy{Pattern: "^(x)$"}
	live.Policies["ha"] = Policy{Pattern: ".*"}
	live.Bindings = append(live.Bindings,
		Binding{Source: "orders.dlx", Destination: "audit"},
		Binding{Source: "bills.dlx", Destination: "orders.failed"},
		Binding{Source: "orders.return", Destination: "created", RoutingKey: "return:created", Arguments: Arguments{AttachmentArgument: true}},
		Binding{Source: "orders.return", Destination: "audit", RoutingKey: "order.created"},
	)
	return live
}

func TestOwnedLeavesOutWhatOthersMade(t *testing.T) {
	t.Parallel()
	p := orders()
	want := Render(Expand(p), Expand(p))
	if diff := cmp.Diff(want, Render(Owned(p, liveVhost(p)), Expand(p))); diff != "" {
		t.Error(diff)
	}
}

// Messages of one work queue that come back to another, or a binding that somebody altered.
func TestOwnedFindsReturnsGoneWrong(t *testing.T) {
	t.Parallel()
	p := orders()
	live := liveVhost(p)
	wrong := []Binding{
		{Source: "orders.return", Destination: "audit", RoutingKey: "return:created"},
		{Source: "orders.return", Destination: "created", RoutingKey: "return:created", Arguments: Arguments{"by": "hand"}},
	}
	live.Bindings = append(live.Bindings, wrong...)
	if diff := cmp.Diff(wrong, Diff(Expand(p), Owned(p, live)).Delete.Bindings); diff != "" {
		t.Error(diff)
	}
	recovered, err := Recover("orders", "/", live)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, recovered); diff != "" {
		t.Error(diff)
	}
}

func TestOwnedFindsRetiredQueues(t *testing.T) {
	t.Parallel()
	p := orders()
	p.Retired = []time.Duration{time.Hour}
	live := liveVhost(p)
	p.Retired = nil
	if _, found := Owned(p, live).Queues["orders.retry.1h"]; !found {
		t.Error("a retry queue that left the schedule was not found")
	}
}

func TestRecoverGivesBackTheSpecification(t *testing.T) {
	t.Parallel()
	p := orders()
	got, err := Recover("orders", "/", liveVhost(p))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Recover("other", "/", liveVhost(p)); err == nil {
		t.Error("a pipeline that does not exist was recovered")
	}
}

func TestDiffFindsEveryAttribute(t *testing.T) {
	t.Parallel()
	p := orders()
	for name, alter := range map[string]func(Topology){
		"exchange type":      func(l Topology) { l.Exchanges["orders.retry"] = Exchange{Type: "topic"} },
		"exchange transient": func(l Topology) { l.Exchanges["orders.retry"] = Exchange{Type: "direct", Transient: true} },
		"exchange internal":  func(l Topology) { l.Exchanges["orders.retry"] = Exchange{Type: "direct", Internal: true} },
		"queue type":         func(l Topology) { l.Queues["orders.retry.5s"].Arguments["x-message-ttl"] = "5000" },
		"number as text":     func(l Topology) { l.Queues["paid"].Arguments["x-single-active-consumer"] = "true" },
		"policy priority": func(l Topology) {
			policy := l.Policies["retry/orders/queues"]
			policy.Priority++
			l.Policies["retry/orders/queues"] = policy
		},
	} {
		live := Expand(p)
		alter(live)
		if Diff(Expand(p), live).Empty() {
			t.Errorf("%s: no difference found", name)
		}
		if cmp.Diff(Render(Expand(p), Expand(p)), Render(live, Expand(p))) == "" {
			t.Errorf("%s: the difference does not show", name)
		}
	}
	if changes := Diff(Expand(p), Expand(p)); !changes.Empty() {
		t.Errorf("a topology differs from itself: %+v", changes)
	}
}

func TestUnprotectedWorkQueues(t *testing.T) {
	t.Parallel()
	prior, next := orders(), orders()
	if got := Unprotected(prior, next); got != nil {
		t.Errorf("nothing changed, but %q", got)
	}
	next.WorkQueues = map[string]WorkQueue{"created": {Type: Quorum}, "paid": {Type: Classic, Declare: true}}
	if got := Unprotected(prior, next); !slices.Equal(got, []string{"a|b.c", "paid"}) {
		t.Errorf("got %q", got)
	}
	if got := Unprotected(prior, Pipeline{}); !slices.Equal(got, []string{"a|b.c", "created", "paid"}) {
		t.Errorf("destroy: got %q", got)
	}
}

func TestDisowned(t *testing.T) {
	t.Parallel()
	prior := orders()
	live := Owned(prior, liveVhost(prior))
	next := orders()
	next.WorkQueues = map[string]WorkQueue{"paid": {Type: Quorum}}
	if _, stays := Disowned(live, prior, &next, Topology{}).Queues["paid"]; stays {
		t.Error("a queue that is attached but not declared any more would be deleted")
	}
	next.WorkQueues = nil
	if _, stays := Disowned(live, prior, &next, Topology{}).Queues["paid"]; !stays {
		t.Error("a declared queue that was removed would not be deleted")
	}
	live.Queues["paid"] = Queue{Type: Quorum}
	if _, stays := Disowned(live, prior, nil, Topology{}).Queues["paid"]; stays {
		t.Error("a queue that somebody else made would be deleted")
	}
}

func TestCheckLive(t *testing.T) {
	t.Parallel()
	p := orders()
	found := CheckLive(p, nil, Vhost{Topology: Topology{Queues: map[string]Queue{
		"created": {Type: Classic}, "legacy": {Type: Classic, AutoDelete: true}, "paid": {Type: Quorum},
	}, Policies: map[string]Policy{"retry/orders/queue/gone": {Pattern: "^(gone)$"}}}})
	if !slices.Equal(found.Missing, []string{"a|b.c"}) {
		t.Errorf("missing: %q", found.Missing)
	}
	if !slices.Equal(found.Exists, []string{`policy "retry/orders/queue/gone"`, `queue "paid"`}) {
		t.Errorf("exists: %q", found.Exists)
	}
	var said []string
	for _, problem := range found.Problems {
		said = append(said, problem.Detail)
	}
	if text := strings.Join(said, "\n"); len(said) != 2 || !strings.Contains(text, `"created" = { type = "classic" }`) || !strings.Contains(text, "deletes itself") {
		t.Errorf("problems: %s", text)
	}
}
