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

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
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
		times, more := map[int]int{}, 0
		for id, n := range u.copies[queue] {
			times[n]++
			if n > most {
				more++
			}
			if n > most*(1+deaths) {
				t.Errorf("%s has %d copies of %s", queue, n, id)
			}
		}
		if more > 2*deaths*window {
			t.Errorf("%s has %d messages more than %d times", queue, more, most)
		}
		t.Logf("RabbitMQ %s: %s: messages by how often they came %v", c.Version, queue, times)
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
		u.Request(t, http.MethodPut, u.Path("queues", queue), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}})
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

// takeLate takes what the full queues have refused before.
func (u *refusedUse) takeLate(ctx context.Context, conn *amqp.Connection) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	var taking sync.WaitGroup
	defer taking.Wait()
	for _, queue := range []string{"full", "audit"} {
		deliveries, err := ch.Consume(queue, "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		taking.Go(func() {
			for d := range deliveries {
				u.took(queue, d)
			}
		})
	}
	return nil
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
