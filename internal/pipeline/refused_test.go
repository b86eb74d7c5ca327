package pipeline

import (
	"regexp"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The refused queue is covered by the pipeline's policy, and is none of a delay. Another engine has none, and finds what is left.
func TestRefusedQueueIsOwnUnderEveryEngine(t *testing.T) {
	t.Parallel()
	p := orders()
	n := p.Names()
	queue := n.RefusedQueue()
	if !n.CoversQueue(queue) || !n.OwnsQueue(queue) {
		t.Errorf("%s is not covered", queue)
	}
	if _, isRetry := n.DelayOf(queue); isRetry {
		t.Errorf("%s is a retry queue", queue)
	}
	expanded := Expand(p)
	if !regexp.MustCompile(expanded.Policies["retry/orders/queues"].Pattern).MatchString(queue) {
		t.Error("the policy does not match")
	}
	p.Engine = EngineNative
	if _, has := Expand(p).Queues[queue]; has {
		t.Error("a pipeline without a worker has a refused queue")
	}
	if _, owned := Owned(p, expanded).Queues[queue]; !owned {
		t.Error("a pipeline without a worker does not find the refused queue of the one before")
	}
	if n.IsOwnQueue(queue, topology.Queue{Type: topology.Quorum}) {
		t.Error("a queue of somebody else is taken for it")
	}
}
