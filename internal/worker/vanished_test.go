package worker_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Without the permission to publish to the default exchange, a message cannot be rescued. The broker closes the channel
// over each attempt, and the other messages must go on.
func TestRescueIsRefused(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created", "orders.paid")
	p.recreate(t, "orders.created")
	user, password := p.User(t, "", "^$", `^orders\.(retry|return|failed\.route)$`, `^orders\.inbox$`)
	r := p.workAs(t, withUser(t, p.URI, user, password), p.spec.Worker())
	created, paid := p.consume(t, "orders.created", nil), p.consume(t, "orders.paid", nil)
	for range 20 {
		p.Publish(t, "", "orders.created", amqp.Publishing{})
		p.Publish(t, "", "orders.paid", amqp.Publishing{})
	}
	reasons := map[any]int{}
	for range 40 {
		reasons[p.await(t, p.names.FailedQueue()).Headers["dead-letter-reason"]]++
	}
	if reasons["unknown_queue"] != 20 || reasons["exhausted"] != 20 {
		t.Errorf("reasons %v", reasons)
	}
	if n, m := len(created.deliveries()), len(paid.deliveries()); n != 20 || m != 60 {
		t.Errorf("%d and %d deliveries, want 20 and 60", n, m)
	}
	require.Equal(t, 1, r.Log.Count("grant it the permission"))

	p.grant(t, user, pipeline.WorkerPermissions(p.names))
	// A deleted queue has no binding to wait for, with or without the permission.
	p.set(t, "DELETE", p.Path("queues", "orders.created"), nil)
	fastest := time.Hour
	for began := time.Now(); time.Since(began) < 4*time.Second; {
		published := time.Now()
		p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
		p.await(t, p.names.FailedQueue())
		fastest = min(fastest, time.Since(published))
	}
	if fastest > 8*time.Second {
		t.Errorf("parked after %s, as if it had waited for a binding", fastest)
	}
	p.DeclareQueue(t, "orders.created", "quorum", nil)
	p.consume(t, "orders.created", nil)
	brokertest.Eventually(t, func() error {
		p.Publish(t, "", "orders.created", amqp.Publishing{})
		if reason := p.await(t, p.names.FailedQueue()).Headers["dead-letter-reason"]; reason != "exhausted" {
			return fmt.Errorf("parked as %s", reason)
		}
		return nil
	})
}

// A full work queue refuses messages that are published to it directly.
func TestRescueThatIsNackedGoesRoundAgain(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	p.set(t, "DELETE", p.Path("policies", "retry/orders/queues"), nil)
	p.set(t, "PUT", p.Path("policies", "full"), map[string]any{
		"pattern": "^orders.created$", "apply-to": "queues",
		"definition": map[string]any{"max-length": 1, "overflow": "reject-publish", "dead-letter-exchange": "orders.dlx"},
	})
	p.recreate(t, "orders.created")
	p.fillQueue(t, "orders.created")
	running := p.work(t)
	p.Publish(t, "orders.dlx", "", amqp.Publishing{MessageId: "nacked", Headers: amqp.Table{"retry-queue": "orders.created"}})

	time.Sleep(2 * time.Second) // several rounds
	for {
		d := p.await(t, "orders.created")
		if d.MessageId == "nacked" {
			if d.Headers["retry-count"] != int64(1) {
				t.Errorf("headers %v: the rounds must not count", d.Headers)
			}
			break
		}
	}
	p.expectEmpty(t, p.names.FailedQueue())
	require.Zero(t, running.Log.Count("session ended"))
}

// recreate deletes a queue and declares it again without the binding, as an application does.
func (p *testPipeline) recreate(t *testing.T, queue string) {
	t.Helper()
	p.set(t, "DELETE", p.Path("queues", queue), nil)
	p.DeclareQueue(t, queue, "quorum", nil)
}
