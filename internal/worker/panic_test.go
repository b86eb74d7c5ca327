package worker_test

import (
	"context"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// A message that makes the worker panic is parked, and takes no other message along.
func TestPanicOverAMessage(t *testing.T) {
	t.Parallel()
	for appID, reason := range map[string]any{
		worker.PanicDeciding: "worker_error",
		worker.PanicRetrying: "worker_error",
		// Nothing can be published, so the broker moves it.
		worker.PanicPublishing: nil,
	} {
		t.Run(appID, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			r := p.workWith(t, p.URI, p.spec.Worker(), func(_ context.Context, o *worker.Options) { o.WithFaults() })
			p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "bad", AppId: appID})
			p.rejectOne(t)
			p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "good"})
			p.rejectOne(t)
			if d := p.await(t, "orders.created"); d.MessageId != "good" {
				t.Errorf("message %q is back", d.MessageId)
			}
			d := p.await(t, p.names.FailedQueue())
			if d.MessageId != "bad" || d.Headers["dead-letter-reason"] != reason {
				t.Errorf("%q: headers %v", d.MessageId, d.Headers)
			}
			log := r.Log
			if n := log.Count("msg=consuming"); n != 1 {
				t.Errorf("%d sessions, want 1", n)
			}
			if n := log.Count("stack="); n != 1 {
				t.Errorf("%d stacks, want 1", n)
			}
		})
	}
}
