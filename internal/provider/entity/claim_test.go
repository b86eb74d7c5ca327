package entity

import (
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Of an owner that makes a queue for itself and a pipeline that has it as a work queue, whichever is planned second hears of it.
func TestOwnQueueIsNoWorkQueue(t *testing.T) {
	t.Parallel()
	own := topology.Topology{Queues: map[string]topology.Queue{"events.inbox": {}}}
	owner := session.Key{Kind: session.DelayedExchange, Vhost: "v", Name: "events"}
	claim := session.Claim{Owner: "orders"}

	first := session.Unconnected()
	if diags := ClaimObjects(first, owner, own); diags.HasError() {
		t.Error(diags)
	}
	if diags := ClaimObjects(first, owner, own); diags.HasError() {
		t.Errorf("planned once more: %v", diags)
	}
	other, conflicts := first.Claim(session.Key{Kind: session.Queue, Vhost: "v", Name: "events.inbox"}, claim)
	if !conflicts || !other.Own || other.Owner != `delayed exchange "events"` {
		t.Errorf("conflicts: %t, with %+v", conflicts, other)
	}
	if _, conflicts := first.Claim(session.Key{Kind: session.Queue, Vhost: "other", Name: "events.inbox"}, claim); conflicts {
		t.Error("a queue of another vhost")
	}

	second := session.Unconnected()
	second.Claim(session.Key{Kind: session.Queue, Vhost: "v", Name: "events.inbox"}, claim)
	diags := ClaimObjects(second, owner, own)
	if len(diags) != 1 || !strings.Contains(diags[0].Detail(), `own queues of the delayed exchange "events", and a work queue of the pipeline "orders"`) {
		t.Errorf("got %v", diags)
	}
}
