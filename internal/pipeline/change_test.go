package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A binding of others is deleted with the pipeline's exchange, even while a killed apply has left it unbound. It is
// also deleted with a deleted queue, but not with a released one.
func TestBindingsThatGo(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	toWork := topology.Binding{Source: "shop", Destination: "work", RoutingKey: "order.#"}
	toInbox := topology.Binding{Source: "shop", Destination: n.Inbox(), RoutingKey: "order.#"}
	listener := topology.Binding{Source: n.FailedExchange(), Destination: "listener"}
	for name, c := range map[string]struct {
		workQueue WorkQueue
		want      []topology.Binding
	}{
		"declared": {WorkQueue{Type: topology.Quorum, Declare: true}, []topology.Binding{listener, toInbox, toWork}},
		"released": {WorkQueue{Type: topology.Quorum}, []topology.Binding{listener, toInbox}},
	} {
		p := one(c.workQueue)
		vhost := p.Expand()
		vhost.Queues["work"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{DeclaredByArgument: "orders"}}
		vhost.Bindings = append(vhost.Bindings, toWork, toInbox, n.Notes().Of(listener, n.FailedExchange()))
		if found := p.Effects(nil, vhost).Bindings; !slices.EqualFunc(found, c.want, topology.Binding.Equal) {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestPlannedIsTheVhostAfterTheApply(t *testing.T) {
	t.Parallel()
	prior, next, bills := orders(), orders(), one(WorkQueue{Type: topology.Quorum})
	bills.Name = "bills"
	next.Delays = next.Delays[:1]
	next.WorkQueues = map[string]WorkQueue{"created": {Type: topology.Quorum}, "new": {Type: topology.Classic}}
	vhost := topology.Vhost{Topology: topology.Merge(liveVhost(prior), bills.Expand()), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	vhost.Queues["work"] = topology.Queue{Type: topology.Quorum}

	planned := next.AfterApply(&prior, vhost)
	want := topology.Render(next.Expand())
	require.Empty(t, cmp.Diff(want, topology.Render(next.Owned(planned.Topology))), "the pipeline")
	if left := bills.Owned(planned.Topology); !left.Empty() {
		t.Errorf("left of another pipeline: %+v", left)
	}
	for name, kept := range map[string]bool{"work": true, "audit": true, "created": true, "new": true, "orders.retry.9s": true, "orders.retry.1m": false, "bills.inbox": false} {
		if _, exists := planned.Queues[name]; exists != kept {
			t.Errorf("%s: there is %v", name, exists)
		}
	}
	require.Contains(t, planned.Policies, "ha", "a policy of nobody is gone")
	require.Contains(t, vhost.Queues, "bills.inbox", "the listing was changed")
}

// A queue that is both a work queue and a failed queue is refused, always for the same reasons.
func TestPlannedDoesNotDependOnTheOrderOfWorkQueues(t *testing.T) {
	t.Parallel()
	p := one(WorkQueue{})
	p.WorkQueues = map[string]WorkQueue{}
	for _, name := range []string{"a", "b", "c", "d"} {
		p.WorkQueues["parks in "+name] = WorkQueue{Type: topology.Quorum, FailedQueue: name, ForeignFailedQueue: true}
		p.WorkQueues[name] = WorkQueue{Type: topology.Quorum, Attach: AttachArguments}
	}
	planned := p.AfterApply(nil, topology.Vhost{Topology: topology.New()})
	for _, name := range []string{"a", "b", "c", "d"} {
		require.Equal(t, topology.Queue{Type: topology.Quorum, Arguments: p.DeadLetterArguments(name)}, planned.Queues[name])
	}
}

// If another pipeline took a queue over, that pipeline's policy covers it. This pipeline leaves it alone, even while
// its own messages can still return there.
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
			vhost := topology.Vhost{Topology: topology.Merge(liveVhost(prior), taking.Expand()), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
			for _, queue := range next.Detached {
				vhost.Queues[queue] = topology.Queue{Type: topology.Quorum}
			}

			planned := next.AfterApply(&prior, vhost)
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
		live := p.Expand()
		test.alter(live)
		require.Equal(t, test.want, p.Effects(&p, live).RestoresRoute, name)
	}
}

// A queue that is taken over has its own policy with precedence, and a mark for its recovery.
func TestTakenOverQueue(t *testing.T) {
	t.Parallel()
	p := one(WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, TakeOverFrom: "bills"})
	vhost := p.Expand()
	vhost.Queues["work"] = topology.Queue{Type: topology.Quorum}
	if got := vhost.Policies["retry/orders/queue/work"].Priority; got != p.PolicyPriority+1 || got != p.PriorityOf("work") {
		t.Errorf("priority %d", got)
	}
	if shared := vhost.Policies["retry/orders/queues"]; strings.Contains(shared.Pattern, "work") {
		t.Errorf("two policies of the pipeline match: %s", shared.Pattern)
	}
	recovered, err := Recover("orders", "/", vhost)
	if err != nil || recovered.WorkQueues["work"].TakeOverFrom != "bills" || recovered.PolicyPriority != p.PolicyPriority {
		t.Errorf("recovered %+v, %v", recovered, err)
	}
	want := []QueueOwner{{Pipeline: "orders", AsWorkQueue: true, TakesOverFrom: "bills"}}
	require.Equal(t, want, ForeignTo(topology.Vhost{Topology: vhost}, []string{"bills"}).OwnersOf("work"))
	matching, _ := topology.NewMatcher(vhost.Policies).Queue("work", topology.Quorum, topology.Version{})
	if policy, found := StrongestPolicy("orders", matching); !found || policy.Name != "retry/orders/queue/work" {
		t.Errorf("strongest: %+v, %t", policy, found)
	}
}

func TestTakenOverAttachment(t *testing.T) {
	t.Parallel()
	a := Attachment{
		Pipeline: "orders", Vhost: "/", Queue: "work", PolicyPriority: 7,
		WorkQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, TakeOverFrom: "bills"},
	}
	vhost := attachedVhost(a, nil)
	require.Equal(t, 8, vhost.Policies["retry/orders/attachment/work"].Priority)
	if got, err := RecoverAttachment("orders", "/", "work", vhost); err != nil || !sameAttachment(got, a) || got.WorkQueue.TakeOverFrom != "bills" {
		t.Errorf("recovered %+v, %v", got, err)
	}
	if owned := a.Owned(vhost); !topology.Diff(a.Expand(), owned).Empty() {
		t.Errorf("owned: %v", topology.Render(owned))
	}
	if owned := (Pipeline{Name: "orders"}).Owned(vhost); len(owned.Bindings) > 0 {
		t.Errorf("the pipeline takes it for its own: %v", owned.Bindings)
	}
}

// A removed queue stays bound. The binding belongs to the pipeline, but the queue is no longer its work queue.
func TestDetachedQueue(t *testing.T) {
	t.Parallel()
	p := one(WorkQueue{Type: topology.Quorum})
	p.WorkQueues, p.Detached = map[string]WorkQueue{}, []string{"work"}
	vhost := p.Expand()
	vhost.Queues["work"] = topology.Queue{Type: topology.Quorum}
	require.Equal(t, p.Detached, Detached("orders", p.Owned(vhost)))
	if recovered, err := Recover("orders", "/", vhost); err != nil || len(recovered.WorkQueues) > 0 {
		t.Errorf("recovered %+v, %v", recovered.WorkQueues, err)
	}
	require.Empty(t, ForeignTo(topology.Vhost{Topology: vhost}, nil).OwnersOf("work"))
	for _, b := range vhost.Bindings {
		require.Empty(t, AttachedBy(b), b)
	}
}

// A binding to an exchange returns no messages to a queue of the same name, whether or not the pipeline has a definition.
func TestBindingToAnExchangeAttachesNoQueue(t *testing.T) {
	t.Parallel()
	vhost := one(WorkQueue{Type: topology.Quorum}).Expand()
	for i, b := range vhost.Bindings {
		vhost.Bindings[i].ToExchange = b.RoutingKey == ReturnKey("work")
	}
	require.Empty(t, ForeignTo(topology.Vhost{Topology: vhost}, nil).OwnersOf("work"))
	vhost.Bindings = slices.DeleteFunc(vhost.Bindings, func(b topology.Binding) bool { return DefinedBy(b) != "" })
	for _, queue := range []string{"work", "orders.inbox"} {
		require.Empty(t, ForeignTo(topology.Vhost{Topology: vhost}, nil).OwnersOf(queue))
	}
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	prior := Pipeline{Name: "orders", WorkQueues: map[string]WorkQueue{
		"stays": {}, "goes": {}, "taken over": {TakeOverFrom: "bills"}, "deleted": {Declare: true}, "a~b": {}, "unbound": {},
	}}
	next := Pipeline{Name: "orders", WorkQueues: map[string]WorkQueue{"stays": {}}}
	bound := prior.Expand().Bindings
	isBound := func(b topology.Binding) bool {
		return b.Destination != "unbound" && slices.ContainsFunc(bound, b.Equal)
	}
	require.Equal(t, []string{"goes", "taken over"}, Leaving(prior, next, isBound))
}
