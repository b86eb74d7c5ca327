package provider_test

import (
	"cmp"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// priorities is the example, applied and with the sidecar at work.
type priorities struct {
	*example
	broker *brokertest.Broker
}

func newPriorities(t *testing.T, delay string) *priorities {
	t.Helper()
	p := &priorities{newExample(t, "priorities"), brokertest.New(t)}
	p.env = append(p.env, "RABBITMQ_URI="+p.broker.URI)
	p.run(t, p.terraform, "apply", "-auto-approve", "-input=false", "-var", "vhost="+p.broker.Vhost, "-var", fmt.Sprintf("delays=[%q]", delay))
	writeFile(t, filepath.Join(p.dir, "worker.json"), p.run(t, p.terraform, "output", "-raw", "worker_config"))
	sidecartest.Start(t, p.env, "--config", filepath.Join(p.dir, "worker.json"))
	return p
}

// has waits until a queue has as many messages as wanted.
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

// take waits until a queue has as many messages as wanted, and receives them in the order in which the queue delivers them.
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

// rejectAll rejects messages in the order in which they came.
func rejectAll(t *testing.T, deliveries []amqp.Delivery) {
	t.Helper()
	for _, d := range deliveries {
		require.NoError(t, d.Nack(false, false))
	}
}

// rejectInto rejects messages in the order in which they came, each when the one before is in the queue that is next.
func (p *priorities) rejectInto(t *testing.T, next string, deliveries []amqp.Delivery) {
	t.Helper()
	for i := range deliveries {
		rejectAll(t, deliveries[i:i+1])
		p.has(t, next, i+1)
	}
}

// Two queues, one for each priority, in one pipeline: each message comes back to its queue. A hundred messages of low priority that fail at the same time do not delay one of high priority.
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

// given are the priorities of messages in the order in which they are published.
var given = []any{nil, 1, 9, 4, 5, 0}

// publishGiven publishes them through the management API, since amqp091-go cannot write priority 0.
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

// A sorting is how a queue delivers what has come in some order. The messages are named after their priorities.
type sorting func(arrived []string, priority func(name string) int) []string

func arrival(arrived []string, _ func(string) int) []string { return arrived }

// highest delivers the highest priority first; equal ones stay in the order of their arrival.
func highest(arrived []string, priority func(string) int) []string {
	sorted := slices.Clone(arrived)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(priority(b), priority(a)) })
	return sorted
}

// twoLanes delivers two messages with a priority above 4 for each other one.
func twoLanes(arrived []string, priority func(string) int) []string {
	isHigh := func(name string) bool { return priority(name) > 4 }
	high := slices.DeleteFunc(slices.Clone(arrived), func(name string) bool { return !isHigh(name) })
	low := slices.DeleteFunc(slices.Clone(arrived), isHigh)
	var sorted []string
	for len(high)+len(low) > 0 {
		n := min(2, len(high))
		sorted, high = append(sorted, high[:n]...), high[n:]
		n = min(1, len(low))
		sorted, low = append(sorted, low[:n]...), low[n:]
	}
	return sorted
}

// quorumSorting is how quorum queues of this release sort, and which priority a message without one has.
func quorumSorting(b *brokertest.Broker) (sorting, int) {
	switch {
	case b.VersionAtLeast("4.3"):
		return highest, 4
	case b.VersionAtLeast("4.0"):
		return twoLanes, 0
	default:
		return arrival, 0
	}
}

// reading is what a name says, with a priority for those that have none.
func reading(without int, unset ...string) func(string) int {
	return func(name string) int {
		n := without
		if !slices.Contains(unset, name) {
			_, _ = fmt.Sscan(name, &n)
		}
		return n
	}
}

// Each message keeps its priority through retries, the failed queue and a replay, and each queue on its way sorts by it as
// its type does. Only 0 comes back as no priority at all.
func TestAcc_ExampleOfPrioritiesInOneQueue(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"emails", "texts"} { // each in the pipeline of that name
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			p := newPriorities(t, "3s")
			quorum, unset := quorumSorting(p.broker)
			work, unsetInWork := quorum, unset
			if queue == "texts" {
				work, unsetInWork = highest, 0
			}
			before, after := reading(unsetInWork, "unset"), reading(unsetInWork, "unset", "0")
			waiting := reading(unset, "unset", "0")

			p.publishGiven(t, queue)
			_, first := p.take(t, queue, len(given))
			inOrder(t, "at first", first, work([]string{"unset", "1", "9", "4", "5", "0"}, before))
			p.rejectInto(t, queue+".retry.3s", first)

			_, second := p.take(t, queue, len(given))
			inOrder(t, "after a retry", second, work(quorum(names(first), waiting), after))
			p.rejectInto(t, queue+".failed", second)

			ch, failed := p.take(t, queue+".failed", len(given))
			inOrder(t, "in the failed queue", failed, quorum(names(second), waiting))
			require.NoError(t, ch.Close())
			p.run(t, terraformtest.BuildSidecar(t), "failed", "replay", queue, "--all", "--vhost", p.broker.Vhost, "--yes")
			_, replayed := p.take(t, queue, len(given))
			inOrder(t, "after a replay", replayed, work(quorum(names(second), waiting), after))
		})
	}
}

func names(deliveries []amqp.Delivery) []string {
	var all []string
	for _, d := range deliveries {
		all = append(all, d.MessageId)
	}
	return all
}

// inOrder compares the order of deliveries, and each one's priority with its name.
func inOrder(t *testing.T, when string, deliveries []amqp.Delivery, want []string) {
	t.Helper()
	if got := names(deliveries); !slices.Equal(got, want) {
		t.Errorf("%s: %s, want %s", when, strings.Join(got, " "), strings.Join(want, " "))
	}
	for _, d := range deliveries {
		if want := reading(0, "unset")(d.MessageId); int(d.Priority) != want {
			t.Errorf("%s: %s has priority %d", when, d.MessageId, d.Priority)
		}
	}
}

// Messages of high priority that fail later keep one of low priority waiting on RabbitMQ 4.0 to 4.2: only the message that
// is next in the retry queue expires, and they are. On other releases it comes back when its delay is over.
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
