package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A declared failed queue stays for those who have failed messages there, be it another pipeline or an attachment.
func TestStayingFailedQueues(t *testing.T) {
	t.Parallel()
	one := Pipeline{Name: "one", QueueType: topology.Quorum, WorkQueues: map[string]WorkQueue{"a": {Type: topology.Quorum, FailedQueue: "f"}}}
	vhost := Expand(one)
	none, uses, declares := one, one, one
	none.WorkQueues = map[string]WorkQueue{"a": {Type: topology.Quorum}}
	uses.WorkQueues = map[string]WorkQueue{"a": {Type: topology.Quorum, FailedQueue: "f", ForeignFailedQueue: true}}
	if staying := StayingFailedQueues(one, &none, vhost); len(staying) != 0 {
		t.Errorf("nobody else uses it: %v", staying)
	}
	vhost.Bindings = append(vhost.Bindings, Names("two").FailedBinding("b", "f", false))
	for name, c := range map[string]struct {
		next *Pipeline
		want map[string][]Names
	}{
		"left out": {&none, map[string][]Names{"f": {"two"}}}, "destroyed": {nil, map[string][]Names{"f": {"two"}}},
		"still used": {&uses, map[string][]Names{}}, "still declared": {&declares, map[string][]Names{}},
	} {
		if diff := cmp.Diff(c.want, StayingFailedQueues(one, c.next, vhost)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		_, deleted := WithoutReleasedQueues(Owned(one, vhost), one, c.next, vhost).Queues["f"]
		if deleted != (name == "still declared") {
			t.Errorf("%s: part of what changes: %t", name, deleted)
		}
	}
}
