package topology

import (
	"maps"
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
	if got := unprotected(prior, Expand(next)); got != nil {
		t.Errorf("nothing changed, but %q", got)
	}
	next.WorkQueues = map[string]WorkQueue{"created": {Type: Quorum}, "paid": {Type: Classic, Declare: true}}
	if got := unprotected(prior, Expand(next)); !slices.Equal(got, []string{"a|b.c", "paid"}) {
		t.Errorf("got %q", got)
	}
	if got := unprotected(prior, Topology{}); !slices.Equal(got, []string{"a|b.c", "created", "paid"}) {
		t.Errorf("destroy: got %q", got)
	}
}

// unprotected is Unprotected for a pipeline of which everything is on the broker.
func unprotected(p Pipeline, wanted Topology) []string {
	vhost := Vhost{Topology: Expand(p), Version: Version{4, 3}}
	for name, w := range p.WorkQueues {
		if w.Declare {
			continue
		}
		vhost.Queues[name] = Queue{Type: w.Type}
		if !w.byPolicy() {
			vhost.Queues[name] = Queue{Type: w.Type, Arguments: w.deadLetterArguments(p.Names())}
		}
	}
	return Unprotected(p.Names(), Owned(p, vhost.Topology), wanted, vhost)
}

// What the broker has tells: an update that failed half-way leaves policies that no configuration knows.
func TestUnprotectedByWhatIsLive(t *testing.T) {
	t.Parallel()
	strong, weak := one(WorkQueue{Type: Quorum}), one(WorkQueue{Type: Quorum, DeadLetterStrategy: AtMostOnce})
	vhost := func(live Pipeline) Vhost {
		v := Vhost{Topology: Expand(live), Version: Version{4, 3}}
		v.Queues["work"], v.Queues["other"] = Queue{Type: Quorum}, Queue{Type: Quorum}
		return v
	}
	foreign := vhost(strong)
	delete(foreign.Policies, "retry/orders/queues")
	delete(foreign.Policies, "retry/orders/fallback")
	foreign.Policies["org"] = Policy{Pattern: "^work$", ApplyTo: "all", Definition: Arguments{"dead-letter-exchange": "x", "dead-letter-strategy": AtLeastOnce, "overflow": "reject-publish"}}
	handed := vhost(strong)
	maps.Copy(handed.Policies, ExpandAttachment(Attachment{Pipeline: "orders", Queue: "work", WorkQueue: WorkQueue{Type: Quorum}, PolicyPriority: 1000}).Policies)
	for name, test := range map[string]struct {
		vhost  Vhost
		wanted Topology
		want   int
	}{
		"attached although no state says so":         {vhost(strong), Expand(orders()), 1},
		"stronger than the configuration":            {vhost(strong), Expand(weak), 1},
		"weaker than the configuration":              {vhost(weak), Expand(strong), 0},
		"not weaker than what it takes the place of": {foreign, Expand(strong), 0},
		"weaker than what it takes the place of":     {foreign, Expand(weak), 1},
		"attached by an attachment, too":             {handed, Expand(orders()), 0},
	} {
		if got := Unprotected("orders", Owned(strong, test.vhost.Topology), test.wanted, test.vhost); len(got) != test.want {
			t.Errorf("%s: %q", name, got)
		}
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
