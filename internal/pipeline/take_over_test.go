package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A queue that is taken over has a policy of its own that takes precedence, and a mark by which it is recovered.
func TestTakenOverQueue(t *testing.T) {
	t.Parallel()
	p := one(WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, TakeOverFrom: "bills"})
	vhost := Expand(p)
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
	want := []Owner{{Pipeline: "orders", AsWorkQueue: true, TakesOverFrom: "bills"}}
	if got := ForeignTo(topology.Vhost{Topology: vhost}, []string{"bills"}).OwnersOf("work"); !slices.Equal(got, want) {
		t.Errorf("owners %+v", got)
	}
	matching, _ := topology.NewMatcher(vhost.Policies).Queue("work", topology.Quorum)
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
	if got := vhost.Policies["retry/orders/attachment/work"].Priority; got != 8 {
		t.Errorf("priority %d", got)
	}
	if got, err := RecoverAttachment("orders", "/", "work", vhost); err != nil || !sameAttachment(got, a) || got.WorkQueue.TakeOverFrom != "bills" {
		t.Errorf("recovered %+v, %v", got, err)
	}
	if owned := OwnedByAttachment(a, vhost); !topology.Diff(ExpandAttachment(a), owned).Empty() {
		t.Errorf("owned: %v", topology.Render(owned))
	}
	if owned := Owned(Pipeline{Name: "orders"}, vhost); len(owned.Bindings) > 0 {
		t.Errorf("the pipeline takes it for its own: %v", owned.Bindings)
	}
}

// A queue that was removed stays bound, by a binding that is the pipeline's and makes it no work queue.
func TestDetachedQueue(t *testing.T) {
	t.Parallel()
	p := one(WorkQueue{Type: topology.Quorum})
	p.WorkQueues, p.Detached = map[string]WorkQueue{}, []string{"work"}
	vhost := Expand(p)
	vhost.Queues["work"] = topology.Queue{Type: topology.Quorum}
	if got := Detached("orders", Owned(p, vhost)); !slices.Equal(got, p.Detached) {
		t.Errorf("detached: %q", got)
	}
	if recovered, err := Recover("orders", "/", vhost); err != nil || len(recovered.WorkQueues) > 0 {
		t.Errorf("recovered %+v, %v", recovered.WorkQueues, err)
	}
	if got := ForeignTo(topology.Vhost{Topology: vhost}, nil).OwnersOf("work"); len(got) > 0 {
		t.Errorf("owners %+v", got)
	}
	for _, b := range vhost.Bindings {
		if by := AttachedBy(b); by != "" {
			t.Errorf("%s attaches the queue to %q", b, by)
		}
	}
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	prior := Pipeline{Name: "orders", WorkQueues: map[string]WorkQueue{
		"stays": {}, "goes": {}, "taken over": {TakeOverFrom: "bills"}, "deleted": {Declare: true}, "a~b": {}, "unbound": {},
	}}
	next := Pipeline{Name: "orders", WorkQueues: map[string]WorkQueue{"stays": {}}}
	bound := Expand(prior).Bindings
	isBound := func(b topology.Binding) bool {
		return b.Destination != "unbound" && slices.ContainsFunc(bound, b.Equal)
	}
	if got := Leaving(prior, next, isBound); !slices.Equal(got, []string{"goes", "taken over"}) {
		t.Errorf("leaving: %q", got)
	}
}
