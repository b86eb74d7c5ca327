package provider_test

import (
	"cmp"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// priorities is the applied example with a running sidecar.
type priorities struct {
	example
	broker *brokertest.Broker
}

func newPriorities(t *testing.T, delay string) *priorities {
	t.Helper()
	p := &priorities{newExample(t, "priorities"), brokertest.New(t)}
	p.Env = append(p.Env, "RABBITMQ_URI="+p.broker.URI)
	p.Run(t, "apply", "-auto-approve", "-input=false", "-var", "vhost="+p.broker.Vhost, "-var", fmt.Sprintf("delays=[%q]", delay))
	p.Write(t, "worker.json", p.Run(t, "output", "-raw", "worker_config"))
	sidecartest.Start(t, p.Env, "--config", filepath.Join(p.Dir, "worker.json"))
	return p
}

// has waits until a queue has the wanted number of messages.
func (p *priorities) has(t *testing.T, queue string, wanted int) *amqp.Channel {
	t.Helper()
	ch := p.broker.Channel(t)
	brokertest.Eventually(t, func() error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err == nil && q.Messages != wanted {
			err = fmt.Errorf("%s has %d messages, want %d", queue, q.Messages, wanted)
		}
		return err
	})
	return ch
}

// take waits until a queue has the wanted number of messages, and receives them in the queue's order.
func (p *priorities) take(t *testing.T, queue string, wanted int) (*amqp.Channel, []amqp.Delivery) {
	t.Helper()
	ch := p.has(t, queue, wanted)
	var taken []amqp.Delivery
	for range wanted {
		d, ok, err := ch.Get(queue, false)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %t after %d messages", queue, err, ok, len(taken))
		}
		taken = append(taken, d)
	}
	return ch, taken
}

// rejectAll rejects messages in the order of their arrival.
func rejectAll(t *testing.T, deliveries []amqp.Delivery) {
	t.Helper()
	for _, d := range deliveries {
		require.NoError(t, d.Nack(false, false))
	}
}

// rejectInto rejects messages in the order of their arrival. It waits for each message in the next queue before it rejects
// another.
func (p *priorities) rejectInto(t *testing.T, next string, deliveries []amqp.Delivery) {
	t.Helper()
	for i := range deliveries {
		rejectAll(t, deliveries[i:i+1])
		p.has(t, next, i+1)
	}
}

// One pipeline has two queues, one for each priority, and each message comes back to its queue. If a hundred messages of low
// priority fail at the same time, they do not delay one of high priority.
func TestAcc_ExampleOfAQueuePerPriority(t *testing.T) {
	t.Parallel()
	const many, few, delay = 100, 5, 2 * time.Second
	p := newPriorities(t, delay.String())
	queues := map[string]int{"emails.low": many, "emails": few}
	for queue, n := range queues {
		for i := range n {
			p.broker.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: fmt.Sprint(i)})
		}
	}
	_, low := p.take(t, "emails.low", many)
	_, high := p.take(t, "emails", few)
	rejectAll(t, append(low, high...))
	rejected := time.Now()
	_, back := p.take(t, "emails", few)
	if waited := time.Since(rejected); waited < delay-100*time.Millisecond {
		t.Errorf("back after %v instead of %v", waited, delay)
	}
	_, lowBack := p.take(t, "emails.low", many)
	for queue, deliveries := range map[string][]amqp.Delivery{"emails": back, "emails.low": lowBack} {
		for _, d := range deliveries {
			if d.RoutingKey != queue || d.Headers["retry-count"] != int64(1) {
				t.Errorf("%s: message %s of %s: %v", queue, d.MessageId, d.RoutingKey, d.Headers)
			}
		}
	}
}

// given are the messages' priorities in the order of publishing.
var given = []any{nil, 1, 9, 4, 5, 0}

// publishGiven publishes the messages through the management API, since amqp091-go cannot write priority 0.
func (p *priorities) publishGiven(t *testing.T, queue string) {
	t.Helper()
	for _, priority := range given {
		properties := map[string]any{"delivery_mode": 2, "message_id": "unset"}
		if priority != nil {
			properties["priority"], properties["message_id"] = priority, fmt.Sprint(priority)
		}
		var answer struct{ Routed bool }
		p.broker.Call(t, http.MethodPost, p.broker.Path("exchanges", "amq.default")+"/publish", map[string]any{
			"properties": properties, "routing_key": queue, "payload": "", "payload_encoding": "string",
		}, &answer)
		if !answer.Routed {
			t.Fatalf("%s did not get the message", queue)
		}
	}
}

// orders are the orders of the messages at first, after a retry, in the failed queue, and after a replay.
type orders [4]string

func same(order string) orders { return orders{order, order, order, order} }

// sorted is how this release's queues sort the messages, which are named after their priorities.
func sorted(b *brokertest.Broker, queue string) orders {
	switch {
	case queue == "texts" && b.VersionAtLeast("4.3"): // a classic queue treats none as 0, the failed queue, a quorum queue, as 4
		return orders{"9 5 4 1 unset 0", "9 5 4 1 unset 0", "9 5 4 unset 0 1", "9 5 4 1 unset 0"}
	case queue == "texts":
		return same("9 5 4 1 unset 0")
	case b.VersionAtLeast("4.3"): // a quorum queue treats none as 4, and so it treats 0 after the retry
		return orders{"9 5 unset 4 1 0", "9 5 unset 4 0 1", "9 5 unset 4 0 1", "9 5 unset 4 0 1"}
	case b.VersionAtLeast("4.0"): // two messages with a priority above 4 for each other one
		return same("9 5 unset 1 4 0")
	default:
		return same("unset 1 9 4 5 0")
	}
}

// Each message keeps its priority through retries, the failed queue and a replay. Each queue on its route sorts by priority
// as its type does. Only priority 0 comes back as no priority.
func TestAcc_ExampleOfPrioritiesInOneQueue(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"emails", "texts"} { // each in the pipeline with the same name
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			const delay = "20s" // all six must be there at the same time
			p := newPriorities(t, delay)
			want := sorted(p.broker, queue)
			p.publishGiven(t, queue)
			_, first := p.take(t, queue, len(given))
			inOrder(t, "at first", first, want[0])
			p.rejectInto(t, queue+".retry."+delay, first)

			_, second := p.take(t, queue, len(given))
			inOrder(t, "after a retry", second, want[1])
			p.rejectInto(t, queue+".failed", second)

			ch, failed := p.take(t, queue+".failed", len(given))
			inOrder(t, "in the failed queue", failed, want[2])
			require.NoError(t, ch.Close())
			p.run(t, terraformtest.BuildSidecar(t), "failed", "replay", queue, "--all", "--vhost", p.broker.Vhost, "--yes")
			_, replayed := p.take(t, queue, len(given))
			inOrder(t, "after a replay", replayed, want[3])
		})
	}
}

// inOrder compares the order of deliveries, and each message's priority with its name.
func inOrder(t *testing.T, when string, deliveries []amqp.Delivery, want string) {
	t.Helper()
	var names []string
	for _, d := range deliveries {
		names = append(names, d.MessageId)
		if priority, _ := strconv.Atoi(d.MessageId); int(d.Priority) != priority {
			t.Errorf("%s: %s has priority %d", when, d.MessageId, d.Priority)
		}
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s: %s, want %s", when, got, want)
	}
}

// On RabbitMQ 4.0 to 4.2, messages of high priority that fail later keep a message of low priority waiting. Only the next
// message in the retry queue expires, and that is one of high priority. On other releases, the message comes back after its
// delay.
func TestAccEveryRelease_PrioritiesWhileWaiting(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"emails", "texts"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			const delay, later = 4 * time.Second, 3 * time.Second
			p := newPriorities(t, delay.String())
			for _, priority := range []uint8{1, 9, 9} {
				p.broker.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, Priority: priority})
			}
			ch, deliveries := p.take(t, queue, 3)
			slices.SortFunc(deliveries, func(a, b amqp.Delivery) int { return cmp.Compare(a.Priority, b.Priority) })
			again, err := ch.Consume(queue, "", true, false, false, false, nil)
			require.NoError(t, err)
			rejected := time.Now()
			rejectAll(t, deliveries[:1])
			time.Sleep(later)
			rejectAll(t, deliveries[1:])
			var came []uint8
			for len(came) < 3 {
				d := <-again
				if waited := time.Since(rejected); waited < delay-100*time.Millisecond {
					t.Errorf("priority %d came back after %v, want %v at least", d.Priority, waited, delay)
				}
				came = append(came, d.Priority)
			}
			want := []uint8{1, 9, 9}
			if p.broker.VersionAtLeast("4.0") && !p.broker.VersionAtLeast("4.3") {
				want = []uint8{9, 9, 1}
			}
			if !slices.Equal(came, want) {
				t.Errorf("they came back in the order %d, want %d", came, want)
			}
		})
	}
}
