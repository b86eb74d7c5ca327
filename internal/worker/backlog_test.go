package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Messages that the failed queue refuses wait in the refused queue. The other messages go on.
func TestRefusedMessagesWaitWhileOthersGoOn(t *testing.T) {
	t.Parallel()
	const n = 50
	p := newPipeline(t, "orders", []string{"100ms", "10s"}, 2, "orders.created")
	p.set(t, "DELETE", p.Path("queues", "orders.failed"), nil)
	p.declareFull(t, "orders.failed", topology.Binding{Source: "orders.failed"})
	r := p.work(t)

	p.fillInbox(t, n, func(int) amqp.Publishing {
		return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "retry": "never"}}
	})
	p.Publish(t, "orders.dlx", "", amqp.Publishing{MessageId: "other", Headers: amqp.Table{"retry-queue": "orders.created"}})
	require.Equal(t, "other", p.await(t, "orders.created").MessageId)
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.RefusedQueue(), n) })
	r.awaitReady(t, "")
}

// A full work queue refuses messages that return to it without a delay. The broker is not at fault.
func TestFullWorkQueueDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		delays []string
		kept   int // how many refused messages are kept
	}{
		"0s alone": {[]string{"0s"}, 50},
		"0s first": {[]string{"0s", "100ms", "1s"}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", test.delays, 3, "orders.created", "orders.paid")
			p.set(t, "PUT", p.Path("policies", "full"), map[string]any{
				"pattern": `^orders\.created$`, "apply-to": "queues", "priority": 2000, "definition": map[string]any{
					"max-length": 1, "overflow": "reject-publish", "dead-letter-exchange": "orders.dlx",
				},
			})
			p.fillQueue(t, "orders.created")
			r := p.work(t)
			p.consume(t, "orders.paid", nil)
			p.fillInbox(t, 50, toRetry)
			time.Sleep(7 * time.Second) // longer than the broker can refuse everything
			p.Publish(t, "", "orders.paid", amqp.Publishing{})
			p.awaitFailed(t, "exhausted")
			brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", test.kept) })
			require.Zero(t, r.Log.Count("session ended"))
			for taken := 0; taken < test.kept; {
				if p.await(t, "orders.created").MessageId != "filling" {
					taken++
				}
			}
		})
	}
}

// A message that the worker leaves to the broker goes through the failed exchange, too.
func TestNothingIsLeftToTheBrokerWithoutAFailedExchange(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*testPipeline, *testing.T){
		"missing":         (*testPipeline).deleteFailedExchange,
		"without a queue": (*testPipeline).unbindFailedQueue,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A quorum queue would keep a message that it cannot dead-letter.
			p := newPipelineOf(t, newSpec(topology.Classic, []string{"100ms"}, 2, "orders.created"))
			remove(p, t)
			p.expectBacklog(t)
		})
	}
}

// A worker that has not met the failed queue yet looks for it before it leaves a message to the broker.
func TestFailedQueueIsLookedForBeforeAMessageIsLeftToTheBroker(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"exchanges", "queues"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPipelineOf(t, newSpec(topology.Classic, []string{"100ms"}, 2, "orders.created"))
			p.set(t, "DELETE", p.Path(kind, "orders.failed"), nil)
			p.Publish(t, "orders.dlx", "", amqp.Publishing{MessageId: "large", Headers: amqp.Table{
				"retry-queue": "orders.created", "large": strings.Repeat("x", 130_200),
			}})
			for range 2 {
				r := p.workWith(t, p.URI, p.spec.Worker(), func(_ context.Context, o *worker.Options) { o.DrainTimeout = 2 * time.Second })
				r.Log.Await(t, "the failed or unrouted exchange, or its queue, is missing", 1)
				r.stop(t)
				brokertest.Eventually(t, func() error { return p.countIs(t, "orders.inbox", 1) })
			}
			p.Create(t, p.spec.Expand())
			p.work(t)
			p.await(t, "orders.failed")
		})
	}
}

// expectBacklog makes two messages wait for the failed exchange: a failed one, and one that cannot be published again.
func (p *testPipeline) expectBacklog(t *testing.T) {
	t.Helper()
	r := p.work(t)
	p.Publish(t, "orders.dlx", "", amqp.Publishing{MessageId: "small", Headers: amqp.Table{"retry-queue": "orders.created", "retry": "never"}})
	p.awaitBacklog(t, r, 1)
	p.Publish(t, "orders.dlx", "", amqp.Publishing{MessageId: "large", Headers: amqp.Table{
		"retry-queue": "orders.created", "large": strings.Repeat("x", 130_200),
	}})
	p.awaitBacklog(t, r, 2)
	p.Create(t, p.spec.Expand())
	got := map[string]bool{}
	for range 2 {
		got[p.await(t, "orders.failed").MessageId] = true
	}
	if !got["small"] || !got["large"] {
		t.Errorf("the failed queue has %v", got)
	}
}

// fillRetryQueue makes the queue of the only delay refuse messages.
func (p *testPipeline) fillRetryQueue(t *testing.T) {
	t.Helper()
	p.set(t, "DELETE", p.Path("queues", "orders.retry.100ms"), nil)
	p.DeclareQueue(t, "orders.retry.100ms", "quorum", map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"})
	p.Bind(t, topology.Binding{Source: "orders.retry", Destination: "orders.retry.100ms", RoutingKey: pipeline.DelayKey(100 * time.Millisecond)})
	p.fillQueue(t, "orders.retry.100ms")
}

func TestClosedConnectionIsRenewed(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	r := p.work(t)
	p.closeConnection(t, "rabbitmq-retry orders publish") // which has no channel yet
	r.Log.Await(t, "session ended", 1)
	p.consume(t, "orders.created", nil)
	for _, purpose := range []string{"publish", "consume"} {
		p.Publish(t, "", "orders.created", amqp.Publishing{})
		p.awaitFailed(t, "exhausted")
		p.closeConnection(t, "rabbitmq-retry orders "+purpose)
		p.Publish(t, "", "orders.created", amqp.Publishing{})
		p.awaitFailed(t, "exhausted")
	}
	r.Log.Await(t, "session ended", 3)
	require.Equal(t, 3, r.Log.Count("session ended"))
	if strings.Contains(r.Log.String(), p.Password+"@") {
		t.Error("the log has the password")
	}
}

// closeConnection closes a connection as an operator does. The API lists it a few seconds late.
func (p testVhost) closeConnection(t *testing.T, clientName string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		_, answer := p.Request(t, "GET", "/api/vhosts/"+url.PathEscape(p.Vhost)+"/connections", nil)
		var connections []struct {
			Name       string `json:"name"`
			Properties struct {
				Name string `json:"connection_name"`
			} `json:"client_properties"`
		}
		if err := json.Unmarshal(answer, &connections); err != nil {
			return fmt.Errorf("%s: %w", answer, err)
		}
		for _, c := range connections {
			if !strings.HasPrefix(c.Properties.Name, clientName) {
				continue
			}
			if status, _ := p.Request(t, "DELETE", "/api/connections/"+url.PathEscape(c.Name), nil); status/100 == 2 {
				return nil
			}
		}
		return fmt.Errorf("no connection %q in %s", clientName, answer)
	})
}

// On some versions, the delivery count travels with the message. The pipeline's queues must accept a message that a
// consumer has returned often, and operators who look at it.
func TestDeliveryLimitsLeaveRoom(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "m"})
	requeue := func(d amqp.Delivery) error { return d.Reject(true) }
	ch := p.Channel(t)
	for range 18 {
		p.getOne(t, ch, "orders.created", requeue)
	}
	p.rejectOne(t)
	for range 40 {
		p.getOne(t, ch, "orders.inbox", requeue)
	}
	p.work(t)
	brokertest.Eventually(t, func() error { return p.countIs(t, "orders.created", 1) })
	p.rejectOne(t)
	for range 60 {
		p.getOne(t, ch, "orders.failed", requeue)
		time.Sleep(time.Millisecond)
	}
	p.awaitFailed(t, "exhausted")
}
