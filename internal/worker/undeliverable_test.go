package worker_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// longestPause is how long a message that cannot be delivered may keep the others waiting.
var longestPause = brokertest.Slow(8 * time.Second)

// newPipelineForAMQP10 is skipped on brokers that do not speak AMQP 1.0 by themselves.
func newPipelineForAMQP10(t *testing.T, queueType string) (*testPipeline, *amqp10.Client) {
	t.Helper()
	p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
	if !p.VersionAtLeast("4.0") {
		t.Skipf("RabbitMQ %s does not speak AMQP 1.0", p.Version)
	}
	return p, amqp10.Dial(t, p.Broker)
}

// forEachQueueType runs a test on quorum and classic queues.
func forEachQueueType(t *testing.T, test func(*testing.T, *testPipeline, *amqp10.Client)) {
	t.Helper()
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			p, client := newPipelineForAMQP10(t, queueType)
			test(t, p, client)
		})
	}
}

// withID is a message with a message-id, which says what it is.
func withID(id string) amqp10.Message {
	return amqp10.Message{Properties: amqp10.List(amqp10.Text(id)), Data: []byte("body of " + id)}
}

// withUUID cannot be delivered.
func withUUID(id string) amqp10.Message {
	m := withID(id)
	m.ApplicationProperties = amqp10.Map(amqp10.Text("order"), amqp10.UUID(), amqp10.Text("tenant"), amqp10.Text("a"))
	return m
}

// undeliverable are messages that a broker cannot deliver over AMQP 0-9-1, by what dead-letter-error says of them.
func (p *testPipeline) undeliverable() map[string]amqp10.Message {
	long := strings.Repeat("x", 300)
	messages := map[string]amqp10.Message{}
	add := func(change string, build func(*amqp10.Message)) {
		m := withID(fmt.Sprint("bad-", len(messages)))
		build(&m)
		messages[change] = m
	}
	values := map[string]amqp10.Value{
		"a UUID, written as text":                      amqp10.UUID(),
		"a char, written as text":                      amqp10.Fixed(0x73, 0, 0, 0, 'x'),
		"an array in another value, written as a list": amqp10.List(amqp10.Array(0xa1, amqp10.Value("\x01a"))),
		"a key of 300 bytes, left out":                 amqp10.Map(amqp10.Symbol(long), amqp10.Text("v")),
		"a key that is no text, written as text":       amqp10.Map(amqp10.Fixed(0x54, 1), amqp10.Text("v")),
		`"x-k": a UUID, written as text; `:             amqp10.List(amqp10.UUID(), amqp10.Fixed(0x73, 0, 0, 0, 'x')),
		`"x-k": nested deeper than 32 levels, cut off`: amqp10.Nested(40, amqp10.UUID()),
	}
	for change, value := range values {
		add(change, func(m *amqp10.Message) { m.Annotations = amqp10.Map(amqp10.Symbol("x-k"), value) })
	}
	if !p.VersionAtLeast("4.1") {
		// In an annotation it could not be delivered over AMQP 1.0, either.
		for change, value := range map[string]amqp10.Value{
			"a decimal number, its bytes written as text": amqp10.Fixed(0x74, 0, 0, 0, 1),
			"NaN, written as text":                        amqp10.Fixed(0x72, 0x7f, 0xc0, 0, 0),
		} {
			add(change, func(m *amqp10.Message) { m.ApplicationProperties = amqp10.Map(amqp10.Text("k"), value) })
		}
	}
	add(`application property "order": a UUID, written as text`, func(m *amqp10.Message) { *m = withUUID("bad-property") })
	add(`property "content-type": 300 bytes, left out: "xxx`, func(m *amqp10.Message) {
		m.Properties, m.Data = amqp10.List(amqp10.Text("bad-type"), amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Symbol(long)), []byte("body of bad-type")
	})
	add(`property "content-encoding": 300 bytes, left out: "xxx`, func(m *amqp10.Message) {
		m.Properties, m.Data = amqp10.List(amqp10.Text("bad-encoding"), amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Symbol(long)), []byte("body of bad-encoding")
	})
	add(`property "correlation-id": no text, UUID, ulong or binary, left out`, func(m *amqp10.Message) {
		m.Properties, m.Data = amqp10.List(amqp10.Text("bad-id"), amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Symbol("id")), []byte("body of bad-id")
	})
	add(`footer "f": a key that does not begin with x-, left out`, func(m *amqp10.Message) {
		m.Body = append(amqp10.Section(0x75, amqp10.Binary(m.Data)), amqp10.Section(0x78, amqp10.Map(amqp10.Symbol("f"), amqp10.Text("v")))...)
	})
	return messages
}

func TestUndeliverableMessagesAreParked(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		bad := p.undeliverable()
		sender := client.To(t, "/queues/orders.created")
		sent := 0
		honest := func() {
			sender.Send(t, withID(fmt.Sprint("good-", sent)).Encode())
			sent++
		}
		for _, change := range slices.Sorted(maps.Keys(bad)) {
			honest()
			sender.Send(t, bad[change].Encode())
		}
		for sent < goods {
			honest()
		}
		client.Reject(t, "orders.created", goods+len(bad))

		began := time.Now()
		r := p.work(t)
		c := p.consume(t, "orders.created", func(d amqp.Delivery) error { return d.Ack(false) })
		brokertest.Eventually(t, func() error { return c.has(goods) })
		if took := time.Since(began); took > longestPause {
			t.Errorf("all honest messages retried after %s", took)
		}
		brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), len(bad)) })
		texts := map[string]bool{}
		for range bad {
			d := p.awaitFailed(t, "malformed")
			text, _ := d.Headers["dead-letter-error"].(string)
			texts[text] = true
			if d.Headers["retry-queue"] != "orders.created" || d.Headers["retry-count"] != int64(1) || string(d.Body) != "body of "+d.MessageId {
				t.Errorf("%q: body %q, headers %v", d.MessageId, d.Body, d.Headers)
			}
		}
		for change := range bad {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(texts)), func(text string) bool { return strings.Contains(text, change) }) {
				t.Errorf("no dead-letter-error has %q: %q", change, slices.Collect(maps.Keys(texts)))
			}
		}
		if n := r.Log.Count("message parked in the failed queue"); n != len(bad) {
			t.Errorf("%d log lines about parked messages, want %d:\n%s", n, len(bad), r.Log)
		}
		brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
	})
}

// A queue behind the failed exchange that does not answer holds up what cannot be delivered no more than anything else.
func TestUndeliverableMessagesBesideASilentQueue(t *testing.T) {
	t.Parallel()
	const n = 5
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	q := newSilentQueue(p.names.FailedExchange(), p.names.Inbox())
	p.workAs(t, p.throughProxy(t, &proxy{rewrite: q.fromWorker, answers: q.toWorker}), p.spec.Worker())
	good := p.consume(t, "orders.created", acknowledge)
	sender := client.To(t, "/queues/"+p.names.Inbox())
	for i := range n {
		sender.Send(t, withUUID(fmt.Sprint("bad-", i)).Encode())
		p.Publish(t, p.names.DeadLetterExchange(), "orders.created", amqp.Publishing{
			MessageId: fmt.Sprint("good-", i), Headers: amqp.Table{"retry-queue": "orders.created"},
		})
	}
	brokertest.Eventually(t, func() error { return good.has(n) })
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
	// From the queue that only the answer is missing of, and from the refused queue.
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 2*n) })
}

// Those in front of them may be for a queue that does not answer.
func TestUndeliverableMessagesBehindUnansweredOnes(t *testing.T) {
	t.Parallel()
	const n = 20
	p := newPipelineOf(t, newSpec(topology.Quorum, []string{"100ms"}, 2, "good", "silent"))
	if !p.VersionAtLeast("4.0") {
		t.Skipf("RabbitMQ %s does not speak AMQP 1.0", p.Version)
	}
	q := newSilentQueue(p.names.FailedRouteExchange(), "silent")
	good := p.consume(t, "good", acknowledge)
	sender := amqp10.Dial(t, p.Broker).To(t, "/queues/"+p.names.Inbox())
	for i := range n {
		p.Publish(t, p.names.DeadLetterExchange(), "silent", amqp.Publishing{Headers: amqp.Table{"retry-queue": "silent", "retry": "never"}})
		p.Publish(t, p.names.DeadLetterExchange(), "good", amqp.Publishing{MessageId: fmt.Sprint("good-", i), Headers: amqp.Table{"retry-queue": "good"}})
		if i%5 == 4 {
			sender.Send(t, withUUID(fmt.Sprint("bad-", i)).Encode())
		}
	}
	p.workAs(t, p.throughProxy(t, &proxy{rewrite: q.fromWorker, answers: q.toWorker}), p.spec.Worker())
	brokertest.Eventually(t, func() error { return good.has(n) })
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
}

// Two workers meet the same messages, and get each other's.
func TestUndeliverableMessagesAmongMany(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		const messages, every = 1000, 10
		sender := client.To(t, "/queues/orders.created")
		for i := range messages {
			m := withID(strconv.Itoa(i))
			if i%every == 0 {
				m = withUUID(strconv.Itoa(i))
			}
			sender.Send(t, m.Encode())
		}
		client.Reject(t, "orders.created", messages)

		last, pause := time.Now(), time.Duration(0)
		began := last
		var mu sync.Mutex
		seen, copies := map[string]bool{}, 0
		p.consume(t, "orders.created", func(d amqp.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			pause, last = max(pause, now.Sub(last)), now
			if seen[d.MessageId] {
				copies++
			}
			seen[d.MessageId] = true
			return d.Ack(false)
		})
		first, second := p.work(t), p.work(t)
		const honest = messages - messages/every
		brokertest.Eventually(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			if len(seen) < honest {
				return fmt.Errorf("%d of %d messages retried", len(seen), honest)
			}
			return nil
		})
		brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%s, longest pause %s, %d copies, %d and %d sessions", time.Since(began), pause, copies,
			first.Log.Count("msg=consuming"), second.Log.Count("msg=consuming"))
		if pause > longestPause || len(seen) != honest {
			t.Errorf("a pause of %s, %d messages retried, want %d", pause, len(seen), honest)
		}
		parked := map[string]bool{}
		for range messages / every {
			d := p.awaitFailed(t, "malformed")
			if i, err := strconv.Atoi(d.MessageId); err != nil || i%every != 0 || parked[d.MessageId] || d.Headers["order"] != "00010203-0405-0607-0809-0a0b0c0d0e0f" {
				t.Errorf("parked %q (once more: %t) with headers %v", d.MessageId, parked[d.MessageId], d.Headers)
			}
			parked[d.MessageId] = true
		}
		p.expectEmpty(t, p.names.FailedQueue())
	})
}

// The window is wide when the message comes: those that were in flight with it are handled one by one.
func TestUndeliverableMessageInAWideWindow(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		const half = 200
		for part := range 2 {
			p.fillInbox(t, half, func(i int) amqp.Publishing {
				return amqp.Publishing{MessageId: fmt.Sprint(part, "-", i), Headers: amqp.Table{"retry-queue": "orders.created"}}
			})
			if part == 0 {
				client.To(t, "/exchanges/orders.dlx").Send(t, withUUID("bad").Encode())
			}
		}
		a := p.collect(t, "orders.created")
		began := time.Now()
		r := p.work(t)
		a.awaitAtLeast(t, 2*half)
		took := time.Since(began)
		p.awaitFailed(t, "malformed")
		p.expectEmpty(t, p.names.FailedQueue())
		sessions := r.Log.Count("msg=consuming")
		caused := r.series(t)["messages_redelivered_total"]
		t.Logf("%s, %d sessions, %d copies, %.0f redeliveries", took, sessions, a.copies(), caused)
		if a.copies() > 0 && caused == 0 {
			t.Errorf("%d copies, but no redelivery is counted", a.copies())
		}
		if sessions > half/10 { // a busy machine takes some more than an idle one
			t.Errorf("%d sessions, want far fewer than there were messages in flight", sessions)
		}
	})
}

// The original stays where it is for as long as nobody keeps its copy.
func TestUndeliverableMessageStaysWhileItCannotBeParked(t *testing.T) {
	t.Parallel()
	for name, warning := range map[string]string{"unbound": "the failed or unrouted exchange has no queue", "missing": "NOT_FOUND"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
				if name == "unbound" {
					p.unbindFailedQueue(t)
				} else {
					p.deleteFailedExchange(t)
				}
				client.To(t, "/exchanges/orders.dlx").Send(t, withUUID("bad").Encode())
				r := p.work(t)
				r.Log.Await(t, warning, 2)
				brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 1) })
				p.expectEmpty(t, p.names.FailedQueue())
				p.apply(t, pipeline.Expand(p.spec))
				if d := p.awaitFailed(t, "malformed"); d.MessageId != "bad" || d.Headers["tenant"] != "a" {
					t.Errorf("parked %q with headers %v", d.MessageId, d.Headers)
				}
				brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
			})
		})
	}
}

// The names need escaping in an address, the connection is secured, and the user may do nothing that is not needed.
func TestUndeliverableMessageOverTLS(t *testing.T) {
	t.Parallel()
	spec := newSpec(topology.Quorum, []string{"100ms"}, 3, "orders.created")
	spec.Name = "my pipeline.%ü+"
	p := newPipelineOf(t, spec)
	if !p.VersionAtLeast("4.0") {
		t.Skipf("RabbitMQ %s does not speak AMQP 1.0", p.Version)
	}
	amqp10.Dial(t, p.Broker).To(t, "/queues/my%20pipeline.%25%C3%BC%2B.inbox").Send(t, withUUID("bad").Encode())
	user, password := p.User(t, "", "^$", `^my pipeline\.%ü\+\.(retry|return|failed(\.route)?)$|^amq\.default$`, `^my pipeline\.%ü\+\.inbox$`)
	server, ca := brokertest.ServerTLS(t)
	p.workAs(t, withUser(t, p.ThroughTLS(t, server, "cacertfile", ca), user, password), p.spec.Worker())
	if d := p.awaitFailed(t, "malformed"); d.MessageId != "bad" {
		t.Errorf("parked %q with headers %v", d.MessageId, d.Headers)
	}
	p.Publish(t, p.names.DeadLetterExchange(), "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
	p.await(t, "orders.created")
}

// A body that is no data is kept as it is encoded, as the broker does.
func TestUndeliverableMessageWithAValueForABody(t *testing.T) {
	t.Parallel()
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	m := withUUID("bad")
	m.Body = amqp10.Section(0x77, amqp10.Map(amqp10.Symbol("id"), amqp10.UUID()))
	client.To(t, "/exchanges/orders.dlx").Send(t, m.Encode())
	p.work(t)
	if d := p.awaitFailed(t, "malformed"); d.Type != "amqp-1.0" || string(d.Body) != string(m.Body) {
		t.Errorf("type %q, body %x, want %x", d.Type, d.Body, m.Body)
	}
}
