package pipeline

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// liveVhost is what a broker has of the pipeline, among objects of others.
func liveVhost(p Pipeline) topology.Topology {
	live := Expand(p)
	for name, workQueue := range p.WorkQueues {
		if !workQueue.Declare {
			live.Queues[name] = topology.Queue{Type: workQueue.Type}
		}
	}
	live.Exchanges["bills.dlx"] = topology.Exchange{Type: "fanout"}
	live.Queues["orders.retry.9s"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-exchange": "elsewhere"}}
	live.Queues["audit"] = topology.Queue{Type: topology.Classic}
	live.Policies["retry/bills/queues"] = topology.Policy{Pattern: "^(x)$"}
	live.Policies["ha"] = topology.Policy{Pattern: ".*"}
	live.Bindings = append(live.Bindings,
		topology.Binding{Source: "orders.dlx", Destination: "audit"},
		topology.Binding{Source: "bills.dlx", Destination: "orders.failed"},
		topology.Binding{Source: "orders.return", Destination: "created", RoutingKey: "return:created", Arguments: topology.Arguments{AttachmentArgument: true}},
		topology.Binding{Source: "orders.return", Destination: "audit", RoutingKey: "order.created"},
	)
	return live
}

func TestOwnedLeavesOutWhatOthersMade(t *testing.T) {
	t.Parallel()
	p := orders()
	want := topology.Render(Expand(p))
	if diff := cmp.Diff(want, topology.Render(Owned(p, liveVhost(p)))); diff != "" {
		t.Error(diff)
	}
}

// Messages of one work queue that come back to another, or a binding that somebody altered.
func TestOwnedFindsReturnsGoneWrong(t *testing.T) {
	t.Parallel()
	p := orders()
	live := liveVhost(p)
	wrong := []topology.Binding{
		{Source: "orders.return", Destination: "audit", RoutingKey: "return:created"},
		{Source: "orders.return", Destination: "created", RoutingKey: "return:created", Arguments: topology.Arguments{"by": "hand"}},
	}
	live.Bindings = append(live.Bindings, wrong...)
	if diff := cmp.Diff(wrong, topology.Diff(Expand(p), Owned(p, live)).Delete.Bindings); diff != "" {
		t.Error(diff)
	}
	recovered, err := Recover("orders", "/", live)
	require.NoError(t, err)
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
	require.NoError(t, err)
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
	for name, alter := range map[string]func(topology.Topology){
		"exchange type": func(l topology.Topology) { l.Exchanges["orders.retry"] = topology.Exchange{Type: "topic"} },
		"exchange transient": func(l topology.Topology) {
			l.Exchanges["orders.retry"] = topology.Exchange{Type: "direct", Transient: true}
		},
		"exchange internal": func(l topology.Topology) {
			l.Exchanges["orders.retry"] = topology.Exchange{Type: "direct", Internal: true}
		},
		"queue type":     func(l topology.Topology) { l.Queues["orders.retry.5s"].Arguments["x-message-ttl"] = "5000" },
		"number as text": func(l topology.Topology) { l.Queues["paid"].Arguments["x-single-active-consumer"] = "true" },
		"policy priority": func(l topology.Topology) {
			policy := l.Policies["retry/orders/queues"]
			policy.Priority++
			l.Policies["retry/orders/queues"] = policy
		},
	} {
		live := Expand(p)
		alter(live)
		if topology.Diff(Expand(p), live).Empty() {
			t.Errorf("%s: no difference found", name)
		}
		if cmp.Diff(topology.Render(Expand(p)), topology.Render(live)) == "" {
			t.Errorf("%s: the difference does not show", name)
		}
	}
	if changes := topology.Diff(Expand(p), Expand(p)); !changes.Empty() {
		t.Errorf("a topology differs from itself: %+v", changes)
	}
}

func TestDeadLettersAtRiskInWorkQueues(t *testing.T) {
	t.Parallel()
	prior, next := orders(), orders()
	if got := atRisk(prior, Expand(next)); got != nil {
		t.Errorf("nothing changed, but %q", got)
	}
	next.WorkQueues = map[string]WorkQueue{"created": {Type: topology.Quorum}, "paid": {Type: topology.Classic, Declare: true}}
	if got := atRisk(prior, Expand(next)); !slices.Equal(got, []string{"a|b.c", "paid"}) {
		t.Errorf("got %q", got)
	}
	if got := atRisk(prior, topology.Topology{}); !slices.Equal(got, []string{"a|b.c", "created", "paid"}) {
		t.Errorf("destroy: got %q", got)
	}
}

// atRisk is topology.DeadLettersAtRisk for a pipeline of which everything is on the broker.
func atRisk(p Pipeline, wanted topology.Topology) []string {
	vhost := topology.Vhost{Topology: Expand(p), Version: topology.Version{Major: 4, Minor: 3}}
	for name, w := range p.WorkQueues {
		if w.Declare {
			continue
		}
		vhost.Queues[name] = topology.Queue{Type: w.Type}
		if !w.ByPolicy() {
			vhost.Queues[name] = topology.Queue{Type: w.Type, Arguments: p.DeadLetterArguments(name)}
		}
	}
	return topology.DeadLettersAtRisk(Owned(p, vhost.Topology), wanted, vhost, declaredBy(p))
}

func declaredBy(p Pipeline) []string {
	var names []string
	for name, w := range p.WorkQueues {
		if w.Declare {
			names = append(names, name)
		}
	}
	return names
}

// What the broker has tells: an update that failed half-way leaves policies that no configuration knows.
func TestDeadLettersAtRiskByWhatIsLive(t *testing.T) {
	t.Parallel()
	strong, weak := one(WorkQueue{Type: topology.Quorum}), one(WorkQueue{Type: topology.Quorum, DeadLetterStrategy: topology.AtMostOnce})
	vhost := func(live Pipeline) topology.Vhost {
		v := topology.Vhost{Topology: Expand(live), Version: topology.Version{Major: 4, Minor: 3}}
		v.Queues["work"], v.Queues["other"] = topology.Queue{Type: topology.Quorum}, topology.Queue{Type: topology.Quorum}
		return v
	}
	foreign := vhost(strong)
	delete(foreign.Policies, "retry/orders/queues")
	foreign.Policies["org"] = topology.Policy{Pattern: "^work$", ApplyTo: "all", Definition: topology.Arguments{"dead-letter-exchange": "x", "dead-letter-strategy": topology.AtLeastOnce, "overflow": "reject-publish"}}
	handed := vhost(strong)
	maps.Copy(handed.Policies, ExpandAttachment(Attachment{Pipeline: "orders", Queue: "work", WorkQueue: WorkQueue{Type: topology.Quorum}, PolicyPriority: 1000}).Policies)
	for name, test := range map[string]struct {
		vhost  topology.Vhost
		wanted topology.Topology
		want   int
	}{
		"attached although no state says so":         {vhost(strong), Expand(orders()), 1},
		"stronger than the configuration":            {vhost(strong), Expand(weak), 1},
		"weaker than the configuration":              {vhost(weak), Expand(strong), 0},
		"not weaker than what it takes the place of": {foreign, Expand(strong), 0},
		"weaker than what it takes the place of":     {foreign, Expand(weak), 1},
		"attached by an attachment, too":             {handed, Expand(orders()), 0},
	} {
		if got := topology.DeadLettersAtRisk(Owned(strong, test.vhost.Topology), test.wanted, test.vhost, nil); len(got) != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The mark on the queue itself cannot be taken off again, so it is not enough. After an interrupted change there are
// both bindings.
func TestReleasedQueuesAreNotRecoveredAsDeclared(t *testing.T) {
	t.Parallel()
	declared := liveVhost(orders())
	n := orders().Names()
	released, both := declared, declared
	released.Bindings = slices.DeleteFunc(slices.Clone(declared.Bindings), n.DeclaredBinding("paid").Equal)
	released.Bindings = append(released.Bindings, n.ReturnBinding("paid"))
	both.Bindings = append(slices.Clone(declared.Bindings), n.ReturnBinding("paid"))
	for name, c := range map[string]struct {
		vhost topology.Topology
		want  bool
	}{"declared": {declared, true}, "released": {released, false}, "interrupted": {both, false}} {
		p, err := Recover("orders", "/", c.vhost)
		if w, attached := p.WorkQueues["paid"]; err != nil || !attached || w.Declare != c.want {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
}

// RabbitMQ's management API cannot show a binding that has arguments and a key with a ~.
func TestQueuesWithATildeHaveNoMarkedBinding(t *testing.T) {
	t.Parallel()
	p := orders()
	p.WorkQueues = map[string]WorkQueue{"a~b": {Type: topology.Quorum, Declare: true}}
	vhost := Expand(p)
	if n := p.Names(); !slices.ContainsFunc(vhost.Bindings, n.ReturnBinding("a~b").Equal) || n.Declares("a~b", vhost) {
		t.Errorf("%v", vhost.Bindings)
	}
}

func TestDisowned(t *testing.T) {
	t.Parallel()
	prior := orders()
	live := Owned(prior, liveVhost(prior))
	next := orders()
	next.WorkQueues = map[string]WorkQueue{"paid": {Type: topology.Quorum}}
	if _, stays := WithoutReleasedQueues(live, prior, &next, topology.Topology{}).Queues["paid"]; stays {
		t.Error("a queue that is attached but not declared any more would be deleted")
	}
	next.WorkQueues = nil
	if _, stays := WithoutReleasedQueues(live, prior, &next, topology.Topology{}).Queues["paid"]; !stays {
		t.Error("a declared queue that was removed would not be deleted")
	}
	live.Queues["paid"] = topology.Queue{Type: topology.Quorum}
	if _, stays := WithoutReleasedQueues(live, prior, nil, topology.Topology{}).Queues["paid"]; stays {
		t.Error("a queue that somebody else made would be deleted")
	}
}
