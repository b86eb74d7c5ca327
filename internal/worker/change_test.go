package worker_test

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A copied expiration would end the wait in the retry queue early.
func TestExpirationIsDropped(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"900ms"}, 2, "orders.created")
	p.work(t).Log.Await(t, "msg=consuming", 1) // or it would expire in the inbox
	before := time.Now()
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Expiration: "400", Headers: amqp.Table{"retry-queue": "orders.created"}})
	d := p.await(t, "orders.created")
	if waited := time.Since(before); waited < 900*time.Millisecond || d.Expiration != "" {
		t.Errorf("back after %s with expiration %q", waited, d.Expiration)
	}
}

func TestTransientBecomesPersistent(t *testing.T) {
	t.Parallel()
	spec := newSpec(topology.Classic, []string{"100ms"}, 3, "orders.created")
	p := newPipelineOf(t, spec)
	p.work(t)
	c := p.consume(t, "orders.created", nil)
	p.Publish(t, "", "orders.created", amqp.Publishing{DeliveryMode: amqp.Transient})
	failed := p.awaitFailed(t, "exhausted")
	for _, d := range append(c.deliveries()[1:], failed) {
		if d.DeliveryMode != amqp.Persistent || d.Headers["retry-delivery-mode"] != int64(1) {
			t.Errorf("delivery mode %d, headers %v", d.DeliveryMode, d.Headers)
		}
	}
}

// A broker closes the channel over a user-id that is not the publisher's own, and it may log the worker in
// as somebody else than the URI says.
func TestUserIDBecomesAHeader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"of another", "its own"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
			uri := p.URI
			if name == "of another" {
				permissions := pipeline.WorkerPermissions(p.names)
				user, password := p.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
				uri = withUser(t, p.URI, user, password)
			}
			p.workAs(t, uri, p.spec.Worker())
			p.consume(t, "orders.created", nil)
			p.Publish(t, "", "orders.created", amqp.Publishing{UserId: p.Username})
			if failed := p.awaitFailed(t, "exhausted"); failed.UserId != "" || failed.Headers["retry-user-id"] != p.Username {
				t.Errorf("user-id %q, headers %v", failed.UserId, failed.Headers)
			}
		})
	}
}

func TestReasonsThatAreNotRetried(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 4, "orders.created")
	p.work(t)
	p.Publish(t, "", "orders.created", amqp.Publishing{Expiration: "1"})
	failed := p.awaitFailed(t, "expired")
	if failed.Headers["retry-reason"] != "expired" || failed.Headers["retry-count"] != int64(1) {
		t.Errorf("headers %v", failed.Headers)
	}
}

func TestReasonsThatAreRetriedWhenConfigured(t *testing.T) {
	t.Parallel()
	spec := newSpec(topology.Quorum, []string{"100ms"}, 3, "orders.created")
	spec.RetryOn = []string{pipeline.ReasonRejected, pipeline.ReasonExpired}
	p := newPipelineOf(t, spec)
	p.work(t)
	p.Publish(t, "", "orders.created", amqp.Publishing{Expiration: "1"})
	if d := p.await(t, "orders.created"); d.Headers["retry-reason"] != "expired" || d.Expiration != "" {
		t.Errorf("expiration %q, headers %v", d.Expiration, d.Headers)
	}
}

// What cannot be published again is left to the broker, which moves the original; the others go on.
func TestHeadersThatLeaveNoRoomForOurs(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.work(t)
	c := p.consume(t, "orders.created", nil)
	large := strings.Repeat("x", 130_200)
	p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "large", Headers: amqp.Table{"large": large}})
	for range 10 {
		p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "small"})
	}
	for range 11 {
		d := p.await(t, p.names.FailedQueue())
		if d.MessageId == "small" {
			continue
		}
		death := d.Headers["x-death"].([]any)[0].(amqp.Table)
		if d.Headers["large"] != large || d.Headers["retry-count"] != nil || death["queue"] != "orders.inbox" || death["reason"] != "rejected" {
			t.Errorf("the large message was changed: x-death[0] is %v", death)
		}
	}
	if n := len(c.deliveries()); n != 21 {
		t.Errorf("%d deliveries, want 21", n)
	}
}

func TestHistoryIsDroppedToFitTheFrame(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"1ms"}, 40, "orders.created")
	p.work(t)
	c := p.consume(t, "orders.created", nil)
	p.Publish(t, "", "orders.created", amqp.Publishing{Headers: amqp.Table{"large": strings.Repeat("x", 128_800)}})
	failed := p.awaitFailed(t, "exhausted")
	if n := len(c.deliveries()); n != 40 {
		t.Errorf("%d deliveries, want 40", n)
	}
	history, _ := failed.Headers["retry-history"].(string)
	if len(history) >= 2_000 {
		t.Errorf("%d bytes of history", len(history))
	}
}
