//go:build chaos

package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

// TestQueueOnAFrozenNode has an application's queues answer nothing, one behind the exchange that delivers, which gets messages by
// five keys, and one beside the failed queue: their single member is on a node that freezes. What is for others is delivered all the
// same, and nothing more than twice.
//
//nolint:paralleltest // the fault is for this test alone
func TestQueueOnAFrozenNode(t *testing.T) {
	u := &silentUse{refusedUse{application: newApplication(t), copies: map[string]map[string]int{}}}
	frozen := u.nodes[2]
	c := newChaosWith(t, u.application, u, "worker")
	c.leadElsewhere(t, frozen)
	u.declareOn(t, frozen)
	c.avoid(frozen)
	stopConsumers, stopCollecting := c.startConsumers(t), c.startCollecting(t)
	stopProducers := c.startProducers(t, 100)
	over := t.Context().Done()
	pause(over, 10*time.Second)
	sessions := c.replicas[0].count("session ended") // the connections led to other nodes
	require.NoError(t, frozen.freeze())
	t.Cleanup(func() { _ = frozen.thaw() })
	pause(over, 20*time.Second)
	sentBefore, _ := c.ledger.sent()
	deliveredBefore := u.different("created")
	pause(over, 20*time.Second)
	sent, _ := c.ledger.sent()
	sent, delivered := (sent-sentBefore)/3, u.different("created")-deliveredBefore
	t.Logf("RabbitMQ %s: sent within 20 s: %d, delivered: %d", c.Version, sent, delivered)
	if delivered < sent/2 {
		t.Errorf("%d of %d messages are delivered:\n%s", delivered, sent, c.replicas[0].end())
	}
	stopProducers()
	require.NoError(t, frozen.thaw())
	stopLate := c.start(t, c.consumers, u.takeLate)
	c.drain(t, quietTime, drainTime)
	brokertest.Eventually(t, u.missingSilent)
	stopLate()
	stopCollecting()
	stopConsumers()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, queue := range []string{"created", "shipped", "chaos.failed"} {
		times := map[int]int{}
		for id, n := range u.copies[queue] {
			if times[n]++; n > 2 {
				t.Errorf("%s has %d copies of %s", queue, n, id)
			}
		}
		t.Logf("RabbitMQ %s: %s: messages by how often they came %v", c.Version, queue, times)
	}
	if n := c.replicas[0].count("session ended") - sessions; n > 0 {
		t.Errorf("%d sessions ended:\n%s", n, c.replicas[0].end())
	}
	c.report(t)
}

// silentUse is a delayed exchange and a pipeline with a queue each that does not answer beside a good one.
type silentUse struct{ refusedUse }

// takeLead makes the node that evaluates it the leader of a queue.
const takeLead = `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), rabbit_quorum_queue:transfer_leadership(Q, node()).`

// leadElsewhere has a node lead no queue. If it led the refused queue, there would be no place for what is not answered.
func (c *chaos) leadElsewhere(t *testing.T, n *node) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		queues, err := c.queues(t.Context())
		if err != nil {
			return err
		}
		for _, q := range queues {
			leader, e := c.leader(t.Context(), q.Name)
			if e == nil && leader == n {
				e = c.nodes[0].ctl(t.Context(), "eval", fmt.Sprintf(takeLead, c.Vhost, q.Name))
				err = fmt.Errorf("%s is led by %s", q.Name, n)
			}
			if e != nil {
				return e
			}
		}
		return err
	})
}

// declareOn has the queues live on one node only.
func (u *silentUse) declareOn(t *testing.T, n *node) {
	t.Helper()
	conn, err := amqp.Dial(strings.Replace(u.URI, u.nodes[0].amqp, n.amqp, 1) + "/" + u.Vhost)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	require.NoError(t, err)
	for queue, bound := range map[string][2]string{"full": {"events.deliver", "silent.*"}, "audit": {"chaos.failed", ""}} {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{
			"x-queue-type": "quorum", "x-quorum-initial-group-size": 1, "x-queue-leader-locator": "client-local",
		}); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, ch.QueueBind(queue, bound[1], bound[0], false, nil))
	}
	for queue, key := range map[string]string{"created": "created", "shipped": "silent.*"} {
		require.NoError(t, ch.QueueBind(queue, key, "events.deliver", false, nil))
	}
}

func (u *silentUse) message(id string, count int) (exchange, key string, m amqp.Publishing) {
	if count%3 < 2 {
		key = []string{"created", fmt.Sprint("silent.", count/3%5)}[count%3]
		return "events", key, amqp.Publishing{
			MessageId: id, DeliveryMode: amqp.Persistent, Headers: amqp.Table{delaying.HeaderDelay: int64(0)},
		}
	}
	return u.refusedUse.message(id, 1)
}

// different is how many messages a queue has got.
func (u *silentUse) different(queue string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.copies[queue])
}

// missingSilent is an error as long as one of the queues that did not answer lacks a message.
func (u *silentUse) missingSilent() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for silent, other := range map[string]string{"full": "shipped", "audit": u.parking()} {
		for id := range u.copies[other] {
			if u.copies[silent][id] == 0 {
				return fmt.Errorf("%s lacks %s", silent, id)
			}
		}
	}
	return nil
}
