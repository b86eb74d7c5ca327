package worker_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A message is retried as long as it would come back in time, and parked as soon as it would not.
func TestTooOldMessageIsParked(t *testing.T) {
	t.Parallel()
	spec := newSpec(topology.Quorum, []string{"300ms"}, 100, "orders.created")
	spec.MaxAge = pipeline.Delay{Wait: 2 * time.Second, Spelling: "2s"}
	p := newPipelineOf(t, spec)
	p.work(t)
	c := p.consume(t, "orders.created", nil)
	p.Publish(t, "", "orders.created", amqp.Publishing{})
	failed := p.awaitFailed(t, "too_old")
	first, last := failed.Headers["retry-first-failed-at"].(int64), failed.Headers["retry-last-failed-at"].(int64)
	if last-first+300 <= 2000 {
		t.Errorf("parked %d ms after the first failure, although there was time for another wait", last-first)
	}
	got := c.deliveries()
	if n := len(got); n < 2 || int64(n) != failed.Headers["retry-count"] || failed.Headers["retry-delay-ms"] != nil {
		t.Errorf("%d deliveries, headers %v", n, failed.Headers)
	}
	for _, d := range got[1:] {
		if back := d.Headers["retry-last-failed-at"].(int64) + 300 - first; back > 2000 {
			t.Errorf("sent back to arrive %d ms after the first failure", back)
		}
	}
}

func TestWorkQueuesWithAttemptsOfTheirOwn(t *testing.T) {
	t.Parallel()
	attempts := map[string]int{"fewer": 2, "more": 5, "plain": 3}
	spec := newSpec(topology.Quorum, []string{"50ms"}, 3, "plain")
	for _, queue := range []string{"fewer", "more"} {
		spec.WorkQueues[queue] = pipeline.WorkQueue{Type: topology.Quorum, Declare: true, MaxAttempts: attempts[queue]}
	}
	p := newPipelineOf(t, spec)
	p.work(t)
	consumers := map[string]*consumer{}
	for queue := range attempts {
		consumers[queue] = p.consume(t, queue, nil)
		p.Publish(t, "", queue, amqp.Publishing{})
	}
	for range attempts {
		d := p.awaitFailed(t, "exhausted")
		queue := d.Headers["retry-queue"].(string)
		want := int64(attempts[queue])
		if d.Headers["retry-max-attempts"] != want || d.Headers["retry-count"] != want || int64(len(consumers[queue].deliveries())) != want {
			t.Errorf("%d deliveries from %s, want %d, headers %v", len(consumers[queue].deliveries()), queue, want, d.Headers)
		}
	}
}
