//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// TestRefusedLosesNothing has a queue refuse what another one takes, while nodes and a worker die. The other one has each message
// twice at most, but for those that are on their way at a death: they begin again.
//
//nolint:paralleltest // the faults are for this test alone
func TestRefusedLosesNothing(t *testing.T) {
	const deaths, window = 3, 256
	u := &refusedUse{application: newApplication(t), copies: map[string]map[string]int{}}
	c := newChaosWith(t, u.application, u, "worker 1", "worker 2")
	u.fill(t)
	stopConsumers, stopCollecting := c.startConsumers(t), c.startCollecting(t)
	stopProducers := c.startProducers(t, 100)
	over, rng := t.Context().Done(), rand.New(rand.NewPCG(*seed, 0))
	for _, leader := range []string{`^events\.delay\.0s\.0$`, `^chaos\.retry\.0\.refused$`} {
		pause(over, 10*time.Second)
		require.NoError(t, c.killLeader(over, rng, regexp.MustCompile(leader)))
	}
	pause(over, 10*time.Second)
	c.replicas[0].kill()
	pause(over, 10*time.Second)
	stopProducers()

	sent, _ := c.ledger.sent()
	u.limit(t, 1_000_000)
	stopLate := c.start(t, c.consumers, u.takeLate)
	brokertest.Eventually(t, func() error {
		if err := u.missing(c.ledger); err != nil {
			return fmt.Errorf("of %d messages: %w", sent, err)
		}
		held, err := c.holding(t.Context())
		if err == nil && len(held) > 0 {
			err = fmt.Errorf("%v", held)
		}
		return err
	})
	stopLate()
	stopCollecting()
	stopConsumers()
	u.mu.Lock()
	defer u.mu.Unlock()
	for queue, most := range map[string]int{"created": 2, "chaos.failed": 2, "full": 1, "audit": 1} {
		more := 0
		for n, messages := range u.tally(t, queue, most*(1+deaths)) {
			if n > most {
				more += messages
			}
		}
		if more > 2*deaths*window {
			t.Errorf("%s has %d messages more than %d times", queue, more, most)
		}
	}
	c.report(t)
}

// refusedUse is a delayed exchange and a pipeline with a full queue each beside a good one.
type refusedUse struct {
	*application

	mu     sync.Mutex
	copies map[string]map[string]int // by queue and id
}

func (u *refusedUse) hcl() string {
	return fmt.Sprintf(`
resource "rabbitmq_delayed_exchange" "events" {
  name      = "events"
  vhost     = %[1]q
  max_delay = "1s"
}

resource "rabbitmq_retry_pipeline" "chaos" {
  name        = "chaos"
  vhost       = %[1]q
  delays      = ["1s"]
  work_queues = { paid = {} }
}

output "worker" {
  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.chaos.worker], delayed_exchanges = [rabbitmq_delayed_exchange.events.worker] })
}
`, u.Vhost)
}

func (u *refusedUse) next() string { return "" }

func (u *refusedUse) vital() []string { return nil }

func (u *refusedUse) operations(*chaos) []fault { return nil }

// fill binds the good queue, and the full ones, which refuse messages from now on.
func (u *refusedUse) fill(t *testing.T) {
	t.Helper()
	u.limit(t, 1)
	for queue, exchange := range map[string]string{"full": "events.deliver", "audit": "chaos.failed", "created": "events.deliver"} {
		u.DeclareQueue(t, queue, "quorum", nil)
		u.Call(t, http.MethodPost, u.Path("bindings", "e", exchange, "q", queue), map[string]any{"routing_key": "created"}, nil)
	}
	ch := u.Channel(t)
	require.NoError(t, ch.Confirm(false))
	for _, queue := range []string{"full", "audit"} {
		brokertest.Eventually(t, func() error {
			c, err := ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{MessageId: "filling"})
			if err == nil && c.Wait() {
				err = fmt.Errorf("%s takes messages", queue)
			}
			return err
		})
	}
}

func (u *refusedUse) limit(t *testing.T, length int) {
	t.Helper()
	u.Request(t, http.MethodPut, u.Path("policies", "full"), map[string]any{
		"pattern": "^(full|audit)$", "apply-to": "queues", "priority": 2000,
		"definition": map[string]any{"max-length": length, "overflow": "reject-publish"},
	})
}

func (u *refusedUse) message(id string, count int) (exchange, key string, m amqp.Publishing) {
	m = amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Body: []byte(id)}
	if count%2 == 0 {
		m.Headers = amqp.Table{delaying.HeaderDelay: int64(0)}
		return "events", "created", m
	}
	m.Headers = amqp.Table{"retry-queue": "paid", "retry": "never"}
	return "chaos.dlx", "", m
}

func (u *refusedUse) handle(queue string, d amqp.Delivery) {
	u.ledger.process(d.MessageId, 0, d.Redelivered)
	u.took(queue, d)
	_ = d.Ack(false)
}

func (u *refusedUse) parking() string { return "chaos.failed" }

func (u *refusedUse) collect(d amqp.Delivery) {
	reason, _ := d.Headers[deadletter.HeaderDeadLetterReason].(string)
	u.ledger.park(d.MessageId, reason)
	u.took(u.parking(), d)
}

// took counts what is not the same copy again.
func (u *refusedUse) took(queue string, d amqp.Delivery) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.copies[queue] == nil {
		u.copies[queue] = map[string]int{}
	}
	if d.MessageId != "filling" && (!d.Redelivered || u.copies[queue][d.MessageId] == 0) {
		u.copies[queue][d.MessageId]++
	}
}

// tally counts how many messages came how often to a queue: none may have come more often than this. The caller holds the lock.
func (u *refusedUse) tally(t *testing.T, queue string, most int) (times map[int]int) {
	t.Helper()
	times = map[int]int{}
	for id, n := range u.copies[queue] {
		if times[n]++; n > most {
			t.Errorf("%s has %d copies of %s", queue, n, id)
		}
	}
	t.Logf("RabbitMQ %s: %s: messages by how often they came %v", u.Version, queue, times)
	return times
}

// takeLate takes what the full queues have refused before.
func (u *refusedUse) takeLate(ctx context.Context, conn *amqp.Connection) error {
	return takeFrom(ctx, conn, []string{"full", "audit"}, true, u.took)
}

// missing is an error as long as one of the queues lacks a message that was confirmed.
func (u *refusedUse) missing(l *ledger) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	missing := 0
	for id, r := range l.records {
		if u.copies["created"][id] > 0 && u.copies["full"][id] > 0 || u.copies["chaos.failed"][id] > 0 && u.copies["audit"][id] > 0 {
			continue
		}
		if r.confirmed {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d are not in both queues", missing)
	}
	return nil
}

// TestQueueOnAFrozenNode has an application's queues answer nothing, one behind the exchange that delivers, which gets messages by
// five keys, and one beside the failed queue: their single member is on a node that freezes. What is for others is delivered all the
// same, and twice at most, or three times if a queue behind the same address is frozen.
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
	sessions := c.replicas[0].log.Count("session ended") // the connections led to other nodes
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
	// A message behind the first one to a frozen node can have come before it is published once more, and then counts as refused.
	for queue, most := range map[string]int{"created": 2, "shipped": 3, "chaos.failed": 3} {
		u.tally(t, queue, most)
	}
	if n := c.replicas[0].log.Count("session ended") - sessions; n > 0 {
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
	ch := u.through(t, n)
	for queue, bound := range map[string][2]string{"full": {"events.deliver", "silent.*"}, "audit": {"chaos.failed", ""}} {
		declare(t, ch, queue, amqp.Table{"x-quorum-initial-group-size": 1, "x-queue-leader-locator": "client-local"})
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
