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

// teams returns a pipeline with failed queues of every kind.
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
	got := topology.Render(topology.Diff(teams().Expand(), orders().Expand()).Create)
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
	require.Empty(t, cmp.Diff(want, got))
	classic := teams()
	classic.QueueType = topology.Classic
	if q := topology.Render(classic.Expand()).Queues["given-up"]; q != "classic retry-declared-by=orders x-dead-letter-exchange='' x-dead-letter-routing-key=given-up" {
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
	require.Empty(t, cmp.Diff(p, recovered))
	require.Empty(t, cmp.Diff(topology.Render(p.Expand()), topology.Render(p.Owned(live))))
	// A binding to the wrong queue belongs to the pipeline, and shows as a difference.
	wrong := topology.Binding{Source: "orders.failed.route", Destination: "audit", RoutingKey: "failed:created"}
	live.Bindings = append(live.Bindings, wrong)
	if got := topology.Diff(p.Expand(), p.Owned(live)).Delete.Bindings; len(got) != 1 || !got[0].Equal(wrong) {
		t.Errorf("deleted %v", got)
	}
}

// A released failed queue no longer has both marks, and never counts as declared again.
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
	require.Contains(t, prior.Effects(&next, live).Released, "given-up", "a queue that is released would be deleted")
	without := orders()
	require.NotContains(t, prior.Effects(&without, live).Released, "given-up", "a queue that no work queue names stays")
	require.NotContains(t, prior.Effects(nil, live).Released, "given-up", "a destroy leaves the queue behind")
	changed := topology.Merge(live.Without(prior.Owned(live)), next.Expand())
	changed.Queues = live.Queues
	recovered, err := Recover("orders", "/", changed)
	require.NoError(t, err)
	if w := recovered.WorkQueues["created"]; w.FailedQueue != "given-up" || w.DeclaresFailedQueue() {
		t.Errorf("recovered %+v", w)
	}
	live.Queues["given-up"] = topology.Queue{Type: topology.Quorum}
	require.Contains(t, prior.Effects(nil, live).Released, "given-up", "a queue that somebody re-created would be deleted")
}

func TestAttachmentWithFailedQueue(t *testing.T) {
	t.Parallel()
	for _, foreign := range []bool{false, true} {
		a := Attachment{
			Pipeline: "orders", Vhost: "/", Queue: "work", PolicyPriority: DefaultPolicyPriority,
			WorkQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, FailedQueue: "given-up", ForeignFailedQueue: foreign},
		}
		live := topology.Merge(orders().Expand(), a.Expand())
		live.Queues["work"] = topology.Queue{Type: topology.Quorum}
		if foreign {
			live.Queues["given-up"] = topology.Queue{Type: topology.Quorum}
		}
		recovered, err := RecoverAttachment("orders", "/", "work", live)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(a, recovered))
		require.Empty(t, cmp.Diff(topology.Render(a.Expand()), topology.Render(a.Owned(live))))
		extra := topology.Diff(orders().Expand(), orders().Owned(live)).Delete
		require.Truef(t, extra.Empty(), "the pipeline takes %v for its own", topology.Render(extra))
		noBinding := func(topology.Binding) bool { return false }
		if parked := ParkedExcept(noBinding, live)["given-up"]; len(parked) != 1 || parked[0] != "orders" {
			t.Errorf("parked by %v", parked)
		}
	}
}

// A pattern can hold a limited number of names.
func TestManyFailedQueues(t *testing.T) {
	t.Parallel()
	p, names := orders(), map[string]bool{}
	for i := range 100 {
		queue := fmt.Sprintf("a.failed.queue.with.a.long.name.%d", i)
		p.WorkQueues[fmt.Sprint("work", i)] = WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, FailedQueue: queue}
		names[queue] = true
	}
	policies := p.Expand().Policies
	maps.DeleteFunc(policies, func(name string, _ topology.Policy) bool {
		return !strings.HasPrefix(name, "retry/orders/failed-queues")
	})
	for name, policy := range policies {
		if len(policy.Pattern) > maxPattern || !policy.Equal(p.Guard()[name]) {
			t.Errorf("%s has a pattern of %d bytes, or is no guard", name, len(policy.Pattern))
		}
	}
	matcher := topology.NewMatcher(policies)
	maps.DeleteFunc(names, func(queue string, _ bool) bool {
		found, _ := matcher.Queue(queue, topology.Quorum, topology.Version{})
		return len(found) > 0
	})
	require.Empty(t, names, "no policy covers them")
}

// A declared failed queue stays for another pipeline or an attachment that parks messages there.
func TestStayingFailedQueues(t *testing.T) {
	t.Parallel()
	one := Pipeline{Name: "one", QueueType: topology.Quorum, WorkQueues: map[string]WorkQueue{"a": {Type: topology.Quorum, FailedQueue: "f"}}}
	vhost := one.Expand()
	none, uses, declares := one, one, one
	none.WorkQueues = map[string]WorkQueue{"a": {Type: topology.Quorum}}
	uses.WorkQueues = map[string]WorkQueue{"a": {Type: topology.Quorum, FailedQueue: "f", ForeignFailedQueue: true}}
	require.Empty(t, one.Effects(&none, vhost).FailedQueues, "no other pipeline uses it")
	vhost.Bindings = append(vhost.Bindings, Names("two").FailedBinding("b", "f", false))
	for name, c := range map[string]struct {
		next *Pipeline
		want map[string][]string
	}{
		"left out": {&none, map[string][]string{"f": {"two"}}}, "destroyed": {nil, map[string][]string{"f": {"two"}}},
		"still used": {&uses, map[string][]string{}}, "still declared": {&declares, map[string][]string{}},
	} {
		require.Empty(t, cmp.Diff(c.want, one.Effects(c.next, vhost).FailedQueues), name)
		require.Equal(t, name != "still declared", slices.Contains(one.Effects(c.next, vhost).Released, "f"), name)
	}
}
