package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// teams is a pipeline whose work queues have failed queues of every kind.
func teams() Pipeline {
	p := orders()
	for name, w := range map[string]WorkQueue{
		"created": {FailedQueue: "given-up"}, "paid": {FailedQueue: "given-up"},
		"legacy": {FailedQueue: "theirs", ForeignFailedQueue: true},
	} {
		queue := p.WorkQueues[name]
		queue.FailedQueue, queue.ForeignFailedQueue = w.FailedQueue, w.ForeignFailedQueue
		p.WorkQueues[name] = queue
	}
	return p
}

func TestExpandFailedQueues(t *testing.T) {
	t.Parallel()
	got := topology.Render(topology.Diff(Expand(teams()), Expand(orders())).Create)
	want := topology.View{
		Exchanges: map[string]string{},
		Queues: map[string]string{
			"given-up": "quorum retry-declared-by=orders x-dead-letter-exchange='' x-dead-letter-routing-key=given-up x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000000 x-overflow=reject-publish",
		},
		Policies: map[string]string{
			"retry/orders/failed-queues": "queues ^(given-up)$ priority=1000 dead-letter-exchange=orders.dlx dead-letter-strategy=at-least-once overflow=reject-publish",
		},
		Bindings: []string{
			"orders.failed.route -> given-up [failed:created] retry-declared=orders",
			"orders.failed.route -> given-up [failed:paid] retry-declared=orders",
			"orders.failed.route -> theirs [failed:legacy]",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	classic := teams()
	classic.QueueType = topology.Classic
	if q := topology.Render(Expand(classic)).Queues["given-up"]; q != "classic retry-declared-by=orders x-dead-letter-exchange='' x-dead-letter-routing-key=given-up" {
		t.Error(q)
	}
}

func TestRecoverFailedQueues(t *testing.T) {
	t.Parallel()
	p := teams()
	live := liveVhost(p)
	live.Queues["theirs"] = topology.Queue{Type: topology.Classic}
	recovered, err := Recover("orders", "/", live)
	require.NoError(t, err)
	if diff := cmp.Diff(p, recovered); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(topology.Render(Expand(p)), topology.Render(Owned(p, live))); diff != "" {
		t.Error(diff)
	}
	// A binding that leads elsewhere is the pipeline's, and shows as a difference.
	wrong := topology.Binding{Source: "orders.failed.route", Destination: "audit", RoutingKey: "failed:created"}
	live.Bindings = append(live.Bindings, wrong)
	if got := topology.Diff(Expand(p), Owned(p, live)).Delete.Bindings; len(got) != 1 || !got[0].Equal(wrong) {
		t.Errorf("deleted %v", got)
	}
}

// A failed queue that was released has both marks no more, and is never taken for declared again.
func TestReleasedFailedQueues(t *testing.T) {
	t.Parallel()
	prior, next := teams(), teams()
	for _, name := range []string{"created", "paid"} {
		w := next.WorkQueues[name]
		w.ForeignFailedQueue = true
		next.WorkQueues[name] = w
	}
	live := liveVhost(prior)
	live.Queues["theirs"] = topology.Queue{Type: topology.Classic}
	if kept := WithoutReleasedQueues(Owned(prior, live), prior, &next, live); hasGivenUp(kept) {
		t.Error("a queue that is released would be deleted")
	}
	without := orders()
	if kept := WithoutReleasedQueues(Owned(prior, live), prior, &without, live); !hasGivenUp(kept) {
		t.Error("a queue that nobody names stays")
	}
	if kept := WithoutReleasedQueues(Owned(prior, live), prior, nil, live); !hasGivenUp(kept) {
		t.Error("a destroy leaves the queue behind")
	}
	changed := topology.Merge(live.Without(Owned(prior, live)), Expand(next))
	changed.Queues = live.Queues
	recovered, err := Recover("orders", "/", changed)
	require.NoError(t, err)
	if w := recovered.WorkQueues["created"]; w.FailedQueue != "given-up" || w.DeclaresFailedQueue() {
		t.Errorf("recovered %+v", w)
	}
	live.Queues["given-up"] = topology.Queue{Type: topology.Quorum}
	if kept := WithoutReleasedQueues(Owned(prior, live), prior, nil, live); hasGivenUp(kept) {
		t.Error("a queue that somebody re-created would be deleted")
	}
}

func hasGivenUp(t topology.Topology) bool {
	_, has := t.Queues["given-up"]
	return has
}

func TestAttachmentWithFailedQueue(t *testing.T) {
	t.Parallel()
	for _, foreign := range []bool{false, true} {
		a := Attachment{
			Pipeline: "orders", Vhost: "/", Queue: "work", PolicyPriority: DefaultPolicyPriority,
			WorkQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, FailedQueue: "given-up", ForeignFailedQueue: foreign},
		}
		live := topology.Merge(Expand(orders()), ExpandAttachment(a))
		live.Queues["work"] = topology.Queue{Type: topology.Quorum}
		if foreign {
			live.Queues["given-up"] = topology.Queue{Type: topology.Quorum}
		}
		recovered, err := RecoverAttachment("orders", "/", "work", live)
		require.NoError(t, err)
		if diff := cmp.Diff(a, recovered); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(topology.Render(ExpandAttachment(a)), topology.Render(OwnedByAttachment(a, live))); diff != "" {
			t.Error(diff)
		}
		if extra := topology.Diff(Expand(orders()), Owned(orders(), live)).Delete; !extra.Empty() {
			t.Errorf("the pipeline takes %v for its own", topology.Render(extra))
		}
		if parked := ParkedBy(live)["given-up"]; len(parked) != 1 || parked[0] != "orders" {
			t.Errorf("parked by %v", parked)
		}
	}
}

// A pattern holds only so many names.
func TestManyFailedQueues(t *testing.T) {
	t.Parallel()
	p, names := orders(), map[string]bool{}
	for i := range 100 {
		queue := fmt.Sprintf("a.failed.queue.with.a.long.name.%d", i)
		p.WorkQueues[fmt.Sprint("work", i)] = WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, FailedQueue: queue}
		names[queue] = true
	}
	policies := Expand(p).Policies
	maps.DeleteFunc(policies, func(name string, _ topology.Policy) bool {
		return !strings.HasPrefix(name, "retry/orders/failed-queues")
	})
	for name, policy := range policies {
		if len(policy.Pattern) > maxPattern || !policy.Equal(Guard(p)[name]) {
			t.Errorf("%s has a pattern of %d bytes, or is no guard", name, len(policy.Pattern))
		}
	}
	matcher := topology.NewMatcher(policies)
	maps.DeleteFunc(names, func(queue string, _ bool) bool {
		found, _ := matcher.Queue(queue, topology.Quorum)
		return len(found) > 0
	})
	if len(names) > 0 {
		t.Errorf("no policy covers %v", slices.Sorted(maps.Keys(names)))
	}
}
